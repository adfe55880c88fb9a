#include "message_queue.hpp"

#include <algorithm>

namespace hetseq {

namespace {

// By stage: the first stage on its host.
std::vector<std::size_t> hosts_of(std::span<const PipelineStage> stages) {
    std::vector<std::size_t> hosts;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        std::size_t first = 0;
        while (first < s && (!stages[s].host || stages[first].host != stages[s].host))
            ++first;
        hosts.push_back(first);
    }
    return hosts;
}

}  // namespace

MessageQueue::MessageQueue(std::span<const PipelineStage> stages,
                           std::span<const PipelineLink> links)
    : links_{links}, free_ms_(2 * links.size() + 2 * stages.size(), 0) {
    const std::vector<std::size_t> hosts = hosts_of(stages);
    const auto out = [&](std::size_t s) { return 2 * (links.size() + hosts[s]); };
    const auto in = [&](std::size_t s) { return out(s) + 1; };
    for (std::size_t l = 0; l < links.size(); ++l) {
        std::vector<Need> forward{{2 * l}}, backward{{2 * l + 1}};
        if (hosts[l] != hosts[l + 1]) {
            const double front = links[l].front_card, behind = links[l].behind_card;
            forward.insert(forward.end(), {{out(l), front}, {in(l + 1), behind}});
            backward.insert(backward.end(), {{out(l + 1), behind}, {in(l), front}});
        }
        needs_.push_back(std::move(forward));
        needs_.push_back(std::move(backward));
    }
}

std::vector<PipelineMessage> MessageQueue::start(double now_ms) {
    if (waiting_.empty())
        return {};
    std::vector<PipelineMessage> started, left;
    for (PipelineMessage message : waiting_) {
        if (!can_start(message, now_ms)) {
            left.push_back(message);
            continue;
        }
        const PipelineLink& link = links_[message.link];
        const double takes_ms = message.is_forward ? link.forward_ms : link.backward_ms;
        for (const Need& need : needs(message))
            free_ms_[need.carrier] = now_ms + need.part * takes_ms;
        message.arrives_ms = now_ms + takes_ms;
        started.push_back(message);
    }
    waiting_ = std::move(left);
    return started;
}

double MessageQueue::next_free_ms(double now_ms) const {
    double next_ms = never;
    if (!waiting_.empty())
        for (const double ms : free_ms_)
            if (ms > now_ms)
                next_ms = std::min(next_ms, ms);
    return next_ms;
}

bool MessageQueue::can_start(const PipelineMessage& message, double now_ms) const {
    const std::vector<Need>& all = needs(message);
    return std::all_of(
        all.begin(), all.end(), [&](const Need& need) { return free_ms_[need.carrier] <= now_ms; });
}

}  // namespace hetseq
