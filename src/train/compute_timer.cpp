#include "hetseq/train/compute_timer.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace hetseq {

ComputeTimer::ComputeTimer(c10::Device device) : device_{device} {
    if (device.is_cpu())
        return;
    device_begin_.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    device_end_.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);
}

c10::Stream ComputeTimer::stream() const {
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

void ComputeTimer::begin() {
    begin_ = std::chrono::steady_clock::now();
    if (device_begin_)
        device_begin_->record(stream());
}

void ComputeTimer::end() {
    end_ = std::chrono::steady_clock::now();
    if (device_end_)
        device_end_->record(stream());
}

double ComputeTimer::ms() const {
    if (!device_end_)
        return std::chrono::duration<double, std::milli>(end_ - begin_).count();
    device_end_->synchronize();
    return device_begin_->elapsedTime(*device_end_);
}

}  // namespace hetseq
