#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

/// Micro-batches on their way to a device.
class Arrival {
public:
    virtual ~Arrival() = default;
    /// Makes the work that the calling thread gives the device wait for them. The thread itself
    /// does not wait.
    virtual void wait(const std::vector<MicroBatch>& batches) = 0;
};

/// Copies collated micro-batches to the device that computes on them, ahead of their use.
class DeviceTransfer {
public:
    virtual ~DeviceTransfer() = default;
    /// Starts to replace the tensors of `batches` by copies on the device. Tensors for which it has
    /// no memory now stay in host memory. Returns null if nobody has to wait for them.
    virtual std::unique_ptr<Arrival> send(std::vector<MicroBatch>& batches) = 0;
    /// `batch` with all tensors on the device, after `send` and `wait`. Copies those that had no
    /// memory; throws c10::OutOfMemoryError if there is still none.
    virtual MicroBatch bring(const MicroBatch& batch) = 0;
};

/// Leaves everything in host memory.
std::shared_ptr<DeviceTransfer> make_host_transfer();

/// Through pinned memory and a copy stream. Throws DeviceError in a build without CUDA.
std::shared_ptr<DeviceTransfer> make_cuda_transfer(at::Device device);

std::shared_ptr<DeviceTransfer> make_device_transfer(at::Device device);

}  // namespace hetseq
