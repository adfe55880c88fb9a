#include "cuda_events.hpp"

#include <utility>

#include "comm/host/cuda_try.hpp"

namespace hetseq {

CudaEvents::Lent& CudaEvents::Lent::operator=(Lent&& other) noexcept {
    if (this != &other) {
        give_back();
        pool_ = other.pool_;
        event_ = std::move(other.event_);
    }
    return *this;
}

void CudaEvents::Lent::give_back() noexcept {
    if (!event_)
        return;
    try {
        const std::lock_guard lock{pool_->mutex_};
        pool_->free_.push_back(std::move(event_));
    } catch (const std::bad_alloc&) {
        event_.reset();  // one fewer to lend
    }
}

CudaEvent CudaEvents::take() {
    {
        const std::lock_guard lock{mutex_};
        if (!free_.empty()) {
            CudaEvent event = std::move(free_.back());
            free_.pop_back();
            return event;
        }
    }
    cudaEvent_t event = nullptr;
    const unsigned flags = timing_ == Timing::on ? cudaEventDefault : cudaEventDisableTiming;
    CUDA_TRY(cudaEventCreateWithFlags(&event, flags));
    return CudaEvent{event};
}

CudaEvents::Lent CudaEvents::record(cudaStream_t stream) {
    Lent event{*this, take()};
    CUDA_TRY(cudaEventRecord(event.get(), stream));
    return event;
}

}  // namespace hetseq
