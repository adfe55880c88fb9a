#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

namespace hetseq {

/// A micro-batch's activations, that go forward over a link, or its gradients.
struct PipelineMessage {
    std::size_t link = 0;
    bool is_forward = true;
    double arrives_ms = 0;
};

/// Messages of a pipeline that wait for the links and the hosts' cards that they need.
class MessageQueue {
public:
    static constexpr double never = std::numeric_limits<double>::infinity();

    /// `links` outlives the queue.
    MessageQueue(std::span<const PipelineStage> stages, std::span<const PipelineLink> links);

    void add(std::size_t link, bool is_forward) { waiting_.push_back({link, is_forward}); }
    /// Those that begin at `now_ms`, with the times at which they arrive.
    std::vector<PipelineMessage> start(double now_ms);
    /// When a link or a card is free next that is not at `now_ms`; `never` where nothing waits.
    double next_free_ms(double now_ms) const;

private:
    // A direction of a link, or of a host's card, which a message needs for part of its time.
    struct Need {
        std::size_t carrier = 0;
        double part = 1;
    };

    const std::vector<Need>& needs(const PipelineMessage& message) const {
        return needs_[2 * message.link + (message.is_forward ? 0 : 1)];
    }
    bool can_start(const PipelineMessage& message, double now_ms) const;

    std::span<const PipelineLink> links_;
    std::vector<std::vector<Need>> needs_;  // by link: forward, backward
    std::vector<double> free_ms_;           // by carrier
    std::vector<PipelineMessage> waiting_;  // in the order in which they were ready
};

}  // namespace hetseq
