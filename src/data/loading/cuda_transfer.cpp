#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include "hetseq/util/process/profiler_range.hpp"
#include "hetseq/data/loading/device_transfer.hpp"

namespace hetseq {

namespace {

class CudaArrival final : public Arrival {
public:
    explicit CudaArrival(const c10::cuda::CUDAStream& copies) { copied_.record(copies.unwrap()); }

    void wait(const std::vector<MicroBatch>& batches) override {
        const auto consumer = c10::cuda::getCurrentCUDAStream(copied_.device_index());
        copied_.block(consumer.unwrap());
        // The memory belongs to the copy stream; it must not be given out again while the
        // consumer's work on it is queued.
        for (const MicroBatch& batch : batches) {
            for (const auto& [name, tensor] : batch.tensors)
                if (tensor.is_cuda())
                    tensor.record_stream(consumer.unwrap());
            if (batch.sample_ids.is_cuda())
                batch.sample_ids.record_stream(consumer.unwrap());
        }
    }

private:
    c10::Event copied_{c10::kCUDA};
};

class CudaTransfer final : public DeviceTransfer {
public:
    explicit CudaTransfer(at::Device device)
        : device_{device}, copies_{c10::cuda::getStreamFromPool(false, device.index())} {}

    std::unique_ptr<Arrival> send(std::vector<MicroBatch>& batches) override {
        const ProfilerRange range{"copy ahead"};
        const c10::cuda::CUDAStreamGuard guard{copies_};
        try {
            for (MicroBatch& batch : batches)
                copy_all(batch);
        } catch (const c10::OutOfMemoryError&) {
            // The step that needs the memory now gives it back; `bring` copies the rest then.
        }
        return std::make_unique<CudaArrival>(copies_);
    }

    MicroBatch bring(const MicroBatch& batch) override {
        MicroBatch brought = batch;
        copy_all(brought);
        return brought;
    }

private:
    // On the current stream.
    void copy_all(MicroBatch& batch) const {
        for (auto& [name, tensor] : batch.tensors)
            tensor = copy(tensor);
        batch.sample_ids = copy(batch.sample_ids);
    }

    // Pinned memory is given back only when the copy out of it is done.
    at::Tensor copy(const at::Tensor& tensor) const {
        return tensor.device() == device_ ? tensor
                                          : tensor.pin_memory().to(device_, /*non_blocking=*/true);
    }

    at::Device device_;
    c10::cuda::CUDAStream copies_;
};

}  // namespace

std::shared_ptr<DeviceTransfer> make_cuda_transfer(at::Device device) {
    return std::make_shared<CudaTransfer>(device);
}

}  // namespace hetseq
