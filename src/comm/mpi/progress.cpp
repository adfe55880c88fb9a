#include "progress.hpp"

#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// A rank whose share of a core is used up wants none of it spent on tests.
constexpr Backoff::Options transfer_waits{};

}  // namespace

Progress::Progress(std::chrono::milliseconds deadline,
                   const std::atomic<bool>& abandoned,
                   std::string peers)
    : deadline_{deadline},
      abandoned_{abandoned},
      peers_{std::move(peers)},
      backoff_{transfer_waits} {}

void Progress::nothing_moved() {
    backoff_.pause();
    if (!backoff_.slept())
        return;
    if (abandoned_.load(std::memory_order_relaxed))
        throw CommError("a collective was abandoned", "this rank is ending");
    if (Clock::now() - started_ > deadline_)
        throw CommError(
            "a collective did not complete within its deadline",
            std::to_string(deadline_.count() / 1000) + " s without an answer from " + peers_,
            "check whether that rank has ended or stalled, and check its network link");
}

}  // namespace hetseq
