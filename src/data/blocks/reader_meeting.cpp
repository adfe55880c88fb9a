#include "hetseq/data/blocks/reader_meeting.hpp"

#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

// A rank that does not wait any longer gives this up and never frees it: MPI may complete the
// request later, on the communicator that it keeps.
struct Vote {
    std::shared_ptr<const HostComm> node;
    double stops = 0;
    HostRequest pending;
};

}  // namespace

ReaderMeeting::ReaderMeeting(std::shared_ptr<const HostComm> node,
                             std::function<bool()> abandoned,
                             std::chrono::milliseconds patience)
    : node_{std::move(node)}, abandoned_{std::move(abandoned)}, patience_{patience} {}

bool ReaderMeeting::all_go_on() {
    using clock = std::chrono::steady_clock;
    if (stopped_)
        return false;
    auto vote = std::make_unique<Vote>(Vote{node_, abandoned_() ? 1.0 : 0.0, {}});
    vote->pending = node_->start_all_reduce(std::span{&vote->stops, 1}, ReduceOp::max);
    std::optional<clock::time_point> deadline;
    while (!vote->pending.test()) {
        if (!deadline && abandoned_())
            deadline = clock::now() + patience_;
        if (deadline && clock::now() > *deadline) {
            static_cast<void>(vote.release());
            stopped_ = true;
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
    stopped_ = vote->stops > 0;
    return !stopped_;
}

}  // namespace hetseq
