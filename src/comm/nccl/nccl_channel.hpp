#pragma once

#include <chrono>
#include <exception>
#include <functional>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <c10/cuda/CUDAStream.h>

#include "cuda_events.hpp"

namespace hetseq {

/// One rank's end of a non-blocking NCCL communicator, with the stream that its collectives run on.
/// Every wait sleeps and polls for NCCL's own errors and the deadline. The first failure aborts the
/// communicator, which ends its kernels. Every later use throws that failure again.
class NcclChannel {
public:
    struct Options {
        std::chrono::milliseconds deadline{};       // of a collective
        std::chrono::milliseconds join_deadline{};  // of one before `joined`, and of the start
        /// Called now and then in waits, until `joined` replaces it. What it throws is a failure.
        std::function<void()> while_waiting = [] {};
    };

    /// Collective over the ranks that hold `id`; on the current CUDA device, which is `device`.
    NcclChannel(
        const ncclUniqueId& id, int rank, int size, c10::DeviceIndex device, Options options);
    /// Collective, but while an exception unwinds.
    ~NcclChannel();
    NcclChannel(const NcclChannel&) = delete;
    NcclChannel& operator=(const NcclChannel&) = delete;

    /// All ranks are ready: from now on `deadline` counts, and `while_waiting` is called in waits.
    void joined(std::function<void()> while_waiting = [] {});

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    /// One of LibTorch's, which are never destroyed: its allocator records events on a stream that
    /// used a tensor when the tensor is freed, which may be after this channel's end.
    const c10::cuda::CUDAStream& stream() const noexcept { return stream_; }
    /// Events of the work of collectives, with times, and of what they wait for, without.
    CudaEvents& timed_events() noexcept { return timed_events_; }
    CudaEvents& events() noexcept { return events_; }

    /// Runs `call(comm)`, which asks NCCL for work, and waits until NCCL has launched it.
    template <class Call>
    void launch(Call&& call) {
        guarded([&] { call(comm_); });
        wait_for_launch();
    }
    /// Runs `work`, whose failure is this channel's.
    template <class Work>
    void guarded(Work&& work) {
        check();
        try {
            work();
        } catch (...) {
            fail(std::current_exception());
        }
    }

    /// Waits until `ready`, after which nothing is missing but other ranks, and then `end`,
    /// recorded on `stream()`, have passed.
    void wait_for(cudaEvent_t ready, cudaEvent_t end);
    /// Waits for an event of this rank's own work.
    void wait_for_own(cudaEvent_t event);
    bool passed(cudaEvent_t event) const;

private:
    void join(const ncclUniqueId& id);
    /// Throws the failure of an earlier use.
    void check() const;
    template <class Done>
    void poll(const char* what, Done&& done);
    void wait_for_launch();
    bool launched() const;
    /// Throws what NCCL has found meanwhile.
    bool passed_well(cudaEvent_t event) const;
    ncclResult_t state() const;
    [[noreturn]] void fail(std::exception_ptr failure);

    int rank_;
    int size_;
    ncclComm_t comm_ = nullptr;
    c10::cuda::CUDAStream stream_;
    CudaEvents timed_events_{CudaEvents::Timing::on};
    CudaEvents events_{CudaEvents::Timing::off};
    std::chrono::milliseconds deadline_;
    Options options_;
    std::exception_ptr failure_;
};

}  // namespace hetseq
