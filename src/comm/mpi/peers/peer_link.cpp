#include "peer_link.hpp"

#include <utility>

#include "tensor_description.hpp"

namespace hetseq {

PeerLink::PeerLink(int rank, at::Device device, const PeerChannel::Options& options)
    : rank_{rank}, device_{device}, options_{options}, words_(header_words) {}

bool PeerLink::start(Messages& messages) {
    const bool sent = start_sends(messages);
    const bool awaited_header = await_header(messages);
    const bool awaited_rest = await_rest(messages);
    const bool awaited_pieces = await_pieces(messages);
    return sent || awaited_header || awaited_rest || awaited_pieces;
}

// A header has left when the peer has begun to receive it. MPI would keep any number of short
// messages there for it; so it keeps `most_sent` at most.
bool PeerLink::start_sends(Messages& messages) {
    bool started = false;
    while (all_started_ < sending_.size() && parts_out_ < options_.most_sent) {
        SentMessage& message = sending_[all_started_];
        if (!message.ready())
            break;
        const SentMessage::Part part = message.take();
        const auto send =
            part.kind == MessagePart::header ? &Messages::send_synchronously : &Messages::send;
        (messages.*send)(part.bytes.data(),
                         part.bytes.size(),
                         rank_,
                         tag_of(part.kind),
                         {this, part.kind, part.bytes.size(), &message});
        ++message.in_flight;
        ++parts_out_;
        if (message.all_taken())
            ++all_started_;
        started = true;
    }
    return started;
}

// Beyond the limit the peer's messages wait there.
bool PeerLink::await_header(Messages& messages) {
    if (header_is_awaited_ || rest_is_awaited_ ||
        unasked_for + received_.size() + arriving_.size() >= options_.most_waiting)
        return false;
    words_.resize(header_words);
    const auto memory = std::as_writable_bytes(std::span{words_});
    messages.receive(memory.data(),
                     memory.size(),
                     rank_,
                     tag_of(MessagePart::header),
                     {this, MessagePart::header, memory.size()});
    return header_is_awaited_ = true;
}

bool PeerLink::await_rest(Messages& messages) {
    if (!rest_is_awaited_ || rest_is_posted_)
        return false;
    words_.resize(word_count(words_));
    const auto memory = std::as_writable_bytes(std::span{words_}.subspan(header_words));
    messages.receive(memory.data(),
                     memory.size(),
                     rank_,
                     tag_of(MessagePart::rest),
                     {this, MessagePart::rest, memory.size()});
    return rest_is_posted_ = true;
}

bool PeerLink::await_pieces(Messages& messages) {
    bool started = false;
    while (all_posted_ < arriving_.size()) {
        ReceivedMessage& message = arriving_[all_posted_];
        if (message.all_taken()) {
            ++all_posted_;
            continue;
        }
        if (pieces_in_ == options_.most_sent)
            break;
        const std::span<std::byte> piece = message.take();
        messages.receive(piece.data(),
                         piece.size(),
                         rank_,
                         tag_of(MessagePart::piece),
                         {this, MessagePart::piece, piece.size(), nullptr, &message});
        ++message.in_flight;
        ++pieces_in_;
        started = true;
    }
    return started;
}

void PeerLink::complete(const Label& label) {
    Moved& moved = label.sent != nullptr ? moved_out_ : moved_in_;
    ++moved.parts;
    if (label.part == MessagePart::piece)
        moved.bytes += static_cast<std::int64_t>(label.bytes);
    if (label.sent != nullptr)
        has_left(label);
    else
        has_come(label);
}

void PeerLink::has_left(const Label& label) {
    --label.sent->in_flight;
    --parts_out_;
    while (all_started_ > 0 && sending_.front().in_flight == 0) {
        sending_.pop_front();
        --all_started_;
    }
}

void PeerLink::has_come(const Label& label) {
    if (label.part == MessagePart::header) {
        header_is_awaited_ = false;
        rest_is_awaited_ = word_count(words_) > header_words;
        if (!rest_is_awaited_)
            arriving_.emplace_back(words_, device_, options_.piece_bytes);
    } else if (label.part == MessagePart::rest) {
        rest_is_awaited_ = rest_is_posted_ = false;
        arriving_.emplace_back(words_, device_, options_.piece_bytes);
    } else {
        --label.received->in_flight;
        --pieces_in_;
    }
    while (!arriving_.empty() && arriving_.front().complete()) {
        received_.push_back(std::move(arriving_.front()));
        arriving_.pop_front();
        if (all_posted_ > 0)
            --all_posted_;
    }
}

}  // namespace hetseq
