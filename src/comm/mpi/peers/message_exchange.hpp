#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/comm/mpi/peer_channel.hpp"

#include "peer_links.hpp"

namespace hetseq {

/// Where the callers of a channel and its thread hand each other messages. Once it has failed, all
/// calls of callers throw the same exception.
class MessageExchange {
public:
    /// `peers`: ranks and their hosts.
    MessageExchange(const std::vector<std::pair<int, std::string>>& peers,
                    std::chrono::milliseconds deadline);

    // For callers. Those that wait throw CommError when nothing has moved within the deadline.
    void send(int peer, SentMessage message);
    /// Waits for the next message, asks `device` for its tensors, then takes it away.
    std::vector<at::Tensor> receive(int peer, at::Device device);
    void wait_for_sends();
    void wait_for_sends(int peer, std::size_t most_left);
    /// Waits until the thread has nothing to do and has ended.
    void finish();
    /// Fails unless it has failed before. Counts as told to a caller.
    void abandon() noexcept;
    /// A caller knows of the failure, if there is one.
    bool is_told();
    PeerChannel::Traffic take_traffic();

    // For the thread.
    /// Takes what was sent, and gives what has come. `moved`: callers may wait for that. False when
    /// the thread is to end.
    bool hand_over(PeerLinks& links, bool moved);
    /// Sleeps so long, or until callers have something for the thread.
    void sleep(std::chrono::microseconds time);
    void fail(std::exception_ptr reason);
    bool failed();
    void end();

private:
    struct Peer {
        int rank = 0;
        std::string name;
        std::deque<SentMessage> queued;  // for the thread
        std::size_t unsent = 0;          // messages, the queued ones among them
        std::deque<ReceivedMessage> received;
        PeerLink::Moved out, in;
    };

    // The lock is held in all of these.
    template <class Done, class Moves, class Overdue>
    void wait(std::unique_lock<std::mutex>& lock, Done done, Moves moves, Overdue overdue);
    Peer& peer_of(int rank);
    void wait_for_sends(std::unique_lock<std::mutex>& lock,
                        const Peer& peer,
                        std::size_t most_left);
    void hand_over(Peer& peer, PeerLink& link);
    void check();
    void set_failure(std::exception_ptr reason) noexcept;
    void tell_thread();

    const ReceivedMessage& await_next(Peer& peer);

    const std::chrono::milliseconds deadline_;
    std::mutex mutex_;  // of what follows
    std::condition_variable changed_;
    std::condition_variable news_;  // for the thread
    std::deque<Peer> peers_;
    PeerChannel::Traffic traffic_;
    std::exception_ptr failure_;
    bool is_told_ = false;
    bool has_news_ = false;
    bool ending_ = false;
    bool ended_ = false;
};

}  // namespace hetseq
