#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <c10/core/Device.h>

#include "hetseq/comm/mpi/peer_channel.hpp"

#include "comm/mpi/messages_in_flight.hpp"
#include "received_message.hpp"
#include "sent_message.hpp"

namespace hetseq {

/// What passes between this rank and one other, as one thread moves it.
class PeerLink {
public:
    /// A message of MPI that is under way: a part of `sent` or, where that is null, one that comes.
    struct Label {
        PeerLink* link;
        MessagePart part;
        std::size_t bytes;
        SentMessage* sent = nullptr;
        ReceivedMessage* received = nullptr;  // of a piece
    };
    using Messages = MessagesInFlight<Label>;

    /// In one direction, since the start.
    struct Moved {
        std::int64_t parts = 0;
        std::int64_t bytes = 0;  // of tensors
    };

    PeerLink(int rank, at::Device device, const PeerChannel::Options& options);
    PeerLink(const PeerLink&) = delete;
    PeerLink& operator=(const PeerLink&) = delete;

    void enqueue(SentMessage message) { sending_.push_back(std::move(message)); }
    /// Messages that have not left.
    std::size_t unsent() const noexcept { return sending_.size(); }
    /// The complete messages, in order; the caller takes them away.
    std::deque<ReceivedMessage>& received() noexcept { return received_; }
    /// No part of a message has come without the others.
    bool between_messages() const noexcept { return arriving_.empty() && !rest_is_awaited_; }

    /// Starts what may start; true where anything did.
    bool start(Messages& messages);
    /// What `label` stands for has left or come.
    void complete(const Label& label);

    const Moved& moved_out() const noexcept { return moved_out_; }
    const Moved& moved_in() const noexcept { return moved_in_; }

    std::size_t unasked_for = 0;  // messages taken from here that nobody has received

private:
    bool start_sends(Messages& messages);
    bool await_header(Messages& messages);
    bool await_rest(Messages& messages);
    bool await_pieces(Messages& messages);
    void has_left(const Label& label);
    void has_come(const Label& label);

    int rank_;
    at::Device device_;
    PeerChannel::Options options_;

    std::deque<SentMessage> sending_;  // parts of the first ones are under way
    std::size_t all_started_ = 0;      // of those: nothing is left to start
    std::size_t parts_out_ = 0;        // under way

    std::vector<std::int64_t> words_;  // of the next message's description
    bool header_is_awaited_ = false;
    bool rest_is_awaited_ = false;
    bool rest_is_posted_ = false;
    std::deque<ReceivedMessage> arriving_;  // described, not complete
    std::size_t all_posted_ = 0;            // of those: all pieces were asked for
    std::size_t pieces_in_ = 0;             // asked for
    std::deque<ReceivedMessage> received_;
    Moved moved_out_, moved_in_;
};

}  // namespace hetseq
