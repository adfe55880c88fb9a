#include "message_exchange.hpp"

#include <algorithm>
#include <sstream>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"

namespace hetseq {

namespace {

using Clock = std::chrono::steady_clock;

// Between two looks of a waiting thread at what has moved.
constexpr std::chrono::milliseconds longest_look{100};

CommError too_late(const std::string& what,
                   std::chrono::milliseconds deadline,
                   const std::string& peer) {
    std::ostringstream seconds;
    seconds << std::chrono::duration<double>(deadline).count();
    return CommError(what + " within " + seconds.str() + " s",
                     "nothing has moved in that time between this rank and " + peer,
                     "check whether that rank has ended or stalled, and check its network link");
}

}  // namespace

MessageExchange::MessageExchange(const std::vector<std::pair<int, std::string>>& peers,
                                 std::chrono::milliseconds deadline)
    : deadline_{deadline} {
    for (const auto& [rank, host] : peers) {
        Peer& peer = peers_.emplace_back();
        peer.rank = rank;
        peer.name = "rank " + std::to_string(rank) + " on " + host;
    }
}

void MessageExchange::send(int rank, SentMessage message) {
    const std::lock_guard lock{mutex_};
    check();
    Peer& peer = peer_of(rank);
    peer.queued.push_back(std::move(message));
    ++peer.unsent;
    tell_thread();
}

// A message that the device has no memory for stays the next one. The thread adds others behind it
// meanwhile.
std::vector<at::Tensor> MessageExchange::receive(int rank, at::Device device) {
    Peer& peer = peer_of(rank);
    std::vector<at::Tensor> tensors = await_next(peer).tensors(device);
    const std::lock_guard lock{mutex_};
    peer.received.pop_front();
    tell_thread();
    return tensors;
}

const ReceivedMessage& MessageExchange::await_next(Peer& peer) {
    std::unique_lock lock{mutex_};
    const auto begin = Clock::now();
    wait(
        lock,
        [&] { return !peer.received.empty(); },
        [&] { return peer.in.parts; },
        [&] { return too_late("no message from " + peer.name, deadline_, peer.name); });
    traffic_.waited_ms += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    return peer.received.front();
}

void MessageExchange::wait_for_sends() {
    std::unique_lock lock{mutex_};
    for (const Peer& peer : peers_)
        wait_for_sends(lock, peer, 0);
}

void MessageExchange::wait_for_sends(int rank, std::size_t most_left) {
    std::unique_lock lock{mutex_};
    const auto begin = Clock::now();
    wait_for_sends(lock, peer_of(rank), most_left);
    traffic_.waited_ms += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void MessageExchange::wait_for_sends(std::unique_lock<std::mutex>& lock,
                                     const Peer& peer,
                                     std::size_t most_left) {
    wait(
        lock,
        [&] { return peer.unsent <= most_left; },
        [&] { return peer.out.parts; },
        [&] { return too_late(peer.name + " has not taken a message", deadline_, peer.name); });
}

// What has half arrived is waited for too.
void MessageExchange::finish() {
    wait_for_sends();
    std::unique_lock lock{mutex_};
    ending_ = true;
    tell_thread();
    wait(
        lock,
        [&] { return ended_; },
        [&] { return traffic_.bytes_received; },
        [&] { return too_late("the rest of a message has not come", deadline_, "its peers"); });
}

void MessageExchange::abandon() noexcept {
    const std::lock_guard lock{mutex_};
    is_told_ = is_told_ || !failure_;
    set_failure(std::make_exception_ptr(
        CommError("messages between stages of a pipeline were abandoned", "this rank is ending")));
}

bool MessageExchange::is_told() {
    const std::lock_guard lock{mutex_};
    return is_told_;
}

PeerChannel::Traffic MessageExchange::take_traffic() {
    const std::lock_guard lock{mutex_};
    return std::exchange(traffic_, {});
}

bool MessageExchange::hand_over(PeerLinks& links, bool moved) {
    const std::lock_guard lock{mutex_};
    has_news_ = false;
    for (std::size_t i = 0; i < peers_.size(); ++i)
        hand_over(peers_[i], links[i]);
    if (moved)
        changed_.notify_all();
    return !failure_ && !(ending_ && links.at_rest());
}

void MessageExchange::hand_over(Peer& peer, PeerLink& link) {
    for (; !peer.queued.empty(); peer.queued.pop_front())
        link.enqueue(std::move(peer.queued.front()));
    peer.unsent = link.unsent();
    for (; !link.received().empty(); link.received().pop_front())
        peer.received.push_back(std::move(link.received().front()));
    link.unasked_for = peer.received.size();
    traffic_.bytes_sent += link.moved_out().bytes - peer.out.bytes;
    traffic_.bytes_received += link.moved_in().bytes - peer.in.bytes;
    peer.out = link.moved_out();
    peer.in = link.moved_in();
}

void MessageExchange::sleep(std::chrono::microseconds time) {
    std::unique_lock lock{mutex_};
    news_.wait_for(lock, time, [&] { return has_news_; });
}

void MessageExchange::fail(std::exception_ptr reason) {
    const std::lock_guard lock{mutex_};
    set_failure(std::move(reason));
}

bool MessageExchange::failed() {
    const std::lock_guard lock{mutex_};
    return failure_ != nullptr;
}

void MessageExchange::end() {
    const std::lock_guard lock{mutex_};
    ended_ = true;
    changed_.notify_all();
}

// Releases the lock meanwhile. `moves()` counts what the deadline asks for; `overdue()` tells what
// has not come.
template <class Done, class Moves, class Overdue>
void MessageExchange::wait(std::unique_lock<std::mutex>& lock,
                           Done done,
                           Moves moves,
                           Overdue overdue) {
    check();
    if (done())
        return;
    const activity::Waiting waiting;
    std::int64_t seen = moves();
    for (auto last_movement = Clock::now(); !done(); check()) {
        changed_.wait_for(lock, std::min(longest_look, deadline_));
        if (std::exchange(seen, moves()) != seen) {
            last_movement = Clock::now();
            activity::progress();
        } else if (Clock::now() - last_movement > deadline_ && !done()) {
            set_failure(std::make_exception_ptr(overdue()));
        }
    }
}

MessageExchange::Peer& MessageExchange::peer_of(int rank) {
    const auto found = std::find_if(
        peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.rank == rank; });
    HETSEQ_ASSERT(found != peers_.end());
    return *found;
}

void MessageExchange::check() {
    if (!failure_)
        return;
    is_told_ = true;
    std::rethrow_exception(failure_);
}

void MessageExchange::set_failure(std::exception_ptr reason) noexcept {
    if (!failure_)
        failure_ = std::move(reason);
    changed_.notify_all();
    tell_thread();
}

void MessageExchange::tell_thread() {
    has_news_ = true;
    news_.notify_one();
}

}  // namespace hetseq
