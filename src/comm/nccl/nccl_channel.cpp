#include "nccl_channel.hpp"

#include <string>
#include <utility>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/log.hpp"

#include "comm/backoff.hpp"
#include "nccl_try.hpp"

namespace hetseq {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Backoff::Options device_waits{.longest_sleep = std::chrono::microseconds{100}};

CudaStream make_stream() {
    int lowest = 0;
    int highest = 0;
    CUDA_TRY(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    cudaStream_t stream = nullptr;
    CUDA_TRY(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest));
    return CudaStream{stream};
}

}  // namespace

NcclChannel::NcclChannel(const ncclUniqueId& id,
                         int rank,
                         int size,
                         std::chrono::milliseconds deadline)
    : stream_{make_stream()}, deadline_{deadline} {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    NCCL_TRY(ncclCommInitRankConfig(&comm_, size, id, rank, &config));
    wait_for_launch();
}

NcclChannel::~NcclChannel() {
    if (comm_ == nullptr)
        return;
    if (std::uncaught_exceptions() > 0) {
        ncclCommAbort(comm_);
        return;
    }
    try {
        NCCL_TRY(ncclCommFinalize(comm_));
        wait_for_launch();
        NCCL_TRY(ncclCommDestroy(comm_));
    } catch (const std::exception& error) {
        log::here(log::Level::error, error.what());
    }
}

void NcclChannel::check() const {
    if (failure_)
        std::rethrow_exception(failure_);
}

ncclResult_t NcclChannel::state() const {
    ncclResult_t state = ncclSuccess;
    NCCL_TRY(ncclCommGetAsyncError(comm_, &state));
    return state;
}

void NcclChannel::fail(std::exception_ptr failure) {
    failure_ = std::move(failure);
    if (comm_ != nullptr)
        ncclCommAbort(std::exchange(comm_, nullptr));
    std::rethrow_exception(failure_);
}

template <class Done>
void NcclChannel::poll(const char* what, Done&& done) {
    check();
    const activity::Waiting waiting;
    const auto start = Clock::now();
    Backoff backoff{device_waits};
    try {
        while (!done()) {
            if (Clock::now() - start > deadline_)
                throw CommError(
                    std::string(what) + " did not complete within its deadline",
                    std::to_string(deadline_.count() / 1000) + " s without the other ranks",
                    "check whether a rank has ended or stalled, and check its network link");
            backoff.pause();
        }
    } catch (...) {
        fail(std::current_exception());
    }
}

void NcclChannel::wait_for_launch() {
    poll("an NCCL call", [&] {
        const ncclResult_t now = state();
        NCCL_TRY(now);
        return now == ncclSuccess;
    });
}

void NcclChannel::wait_for(cudaEvent_t event) {
    poll("a collective", [&] {
        if (passed(event))
            return true;
        NCCL_TRY(state());
        return false;
    });
}

bool NcclChannel::passed(cudaEvent_t event) const {
    const cudaError_t code = cudaEventQuery(event);
    if (code == cudaErrorNotReady)
        return false;
    CUDA_TRY(code);
    return true;
}

}  // namespace hetseq
