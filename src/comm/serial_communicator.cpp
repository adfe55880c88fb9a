#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "communicators.hpp"

namespace hetseq {

namespace {

class CompleteWork final : public Work {
public:
    void wait() override {}
    bool done() override { return true; }
    double own_ms() override { return 0; }
};

class SerialCommunicator final : public Communicator {
public:
    explicit SerialCommunicator(at::Device device) : device_{device} {}

    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 1; }
    at::Device device() const noexcept override { return device_; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        return complete(tensor);
    }
    std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor tensor,
                                                   std::vector<OwnedRange> /*ranges*/) override {
        return complete(tensor);
    }
    std::unique_ptr<Work> start_all_gather(at::Tensor tensor,
                                           std::vector<OwnedRange> /*ranges*/) override {
        return complete(tensor);
    }
    void broadcast(at::Tensor tensor, int root) override {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous() && root == 0);
    }

private:
    std::unique_ptr<Work> complete(const at::Tensor& tensor) const {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous());
        HETSEQ_ASSERT(tensor.is_floating_point());
        return std::make_unique<CompleteWork>();
    }

    at::Device device_;
};

}  // namespace

std::unique_ptr<Communicator> make_serial_communicator(at::Device device) {
    return std::make_unique<SerialCommunicator>(device);
}

}  // namespace hetseq
