#include "nccl_channel.hpp"

#include <string>
#include <utility>

#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"

#include "comm/backoff.hpp"
#include "comm/host/cuda_try.hpp"
#include "nccl_try.hpp"

namespace hetseq {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds longest_device_sleep{100};
constexpr Backoff::Options device_waits{.longest_sleep = longest_device_sleep,
                                        .longest_in_long_waits = longest_device_sleep};

}  // namespace

NcclChannel::NcclChannel(
    const ncclUniqueId& id, int rank, int size, c10::DeviceIndex device, Options options)
    : rank_{rank},
      size_{size},
      stream_{c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device)},
      deadline_{options.join_deadline},
      options_{std::move(options)} {
    join(id);
}

NcclChannel::~NcclChannel() {
    if (comm_ == nullptr)
        return;
    if (std::uncaught_exceptions() > 0) {
        ncclCommAbort(comm_);
        return;
    }
    try {
        launch([](ncclComm_t comm) { NCCL_TRY(ncclCommFinalize(comm)); });
        NCCL_TRY(ncclCommDestroy(comm_));
    } catch (const std::exception& error) {
        log::here(log::Level::error, error.what());
    }
}

void NcclChannel::joined(std::function<void()> while_waiting) {
    deadline_ = options_.deadline;
    options_.while_waiting = std::move(while_waiting);
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
    guarded([&] {
        const auto start = Clock::now();
        Backoff backoff{device_waits};
        while (!done()) {
            if (Clock::now() - start > deadline_)
                throw CommError(
                    std::string(what) + " did not complete within its deadline",
                    std::to_string(deadline_.count() / 1000) + " s",
                    "check whether a rank has ended or stalled, and check its network link");
            options_.while_waiting();
            backoff.pause();
        }
    });
}

void NcclChannel::join(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    guarded([&] { NCCL_TRY(ncclCommInitRankConfig(&comm_, size_, id, rank_, &config)); });
    const activity::Waiting waiting;
    poll("NCCL's start on all ranks", [&] { return launched(); });
}

bool NcclChannel::launched() const {
    const ncclResult_t now = state();
    NCCL_TRY(now);
    return now == ncclSuccess;
}

void NcclChannel::wait_for_launch() {
    const activity::Waiting waiting;
    poll("an NCCL call", [&] { return launched(); });
}

void NcclChannel::wait_for(cudaEvent_t ready, cudaEvent_t end) {
    wait_for_own(ready);
    const activity::Waiting waiting;
    poll("a collective", [&] { return passed_well(end); });
}

// A kernel that hangs must not look like another rank's fault.
void NcclChannel::wait_for_own(cudaEvent_t event) {
    const activity::OwnWork own_work;
    poll("this rank's own work on its GPU", [&] { return passed_well(event); });
}

bool NcclChannel::passed_well(cudaEvent_t event) const {
    if (passed(event))
        return true;
    NCCL_TRY(state());
    return false;
}

bool NcclChannel::passed(cudaEvent_t event) const {
    const cudaError_t code = cudaEventQuery(event);
    if (code == cudaErrorNotReady)
        return false;
    CUDA_TRY(code);
    return true;
}

}  // namespace hetseq
