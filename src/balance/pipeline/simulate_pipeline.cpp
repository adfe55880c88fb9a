#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

#include "message_queue.hpp"

namespace hetseq {

namespace {

class OneForwardOneBackward {
public:
    OneForwardOneBackward(std::span<const PipelineStage> stages,
                          std::span<const PipelineLink> links)
        : links_{links}, messages_{stages, links} {
        HETSEQ_ASSERT(!stages.empty() && links.size() + 1 == stages.size());
        micro_batches_ = stages.front().forward_ms.size();
        result_.stages.resize(stages.size());
        result_.links.resize(links.size());
        for (const PipelineStage& stage : stages) {
            HETSEQ_ASSERT(stage.most_in_flight > 0);
            HETSEQ_ASSERT(stage.forward_ms.size() == micro_batches_);
            HETSEQ_ASSERT(stage.backward_ms.size() == micro_batches_);
            places_.emplace_back().stage = &stage;
        }
        places_.front().activations = micro_batches_;
        for (std::size_t s = 0; s < places_.size(); ++s)
            if (s == links.size() || !links[s].sends_gradients)
                places_[s].gradients = micro_batches_;
    }

    // From one time to the next at which anything ends.
    SimulatedPipeline run() {
        while (now_ms_ < MessageQueue::never) {
            end_computing();
            end_messages();
            for (const PipelineMessage& message : messages_.start(now_ms_))
                under_way_.push_back(message);
            for (std::size_t s = 0; s < places_.size(); ++s)
                begin_computing(s);
            now_ms_ = next_ms();
        }
        for (const Place& place : places_)
            HETSEQ_ASSERT(place.backwards == micro_batches_);  // else two neighbours wait for
                                                               // each other
        return summary();
    }

private:
    enum class Work { none, forward, backward };
    struct Place {
        const PipelineStage* stage = nullptr;
        std::size_t forwards = 0, backwards = 0;     // begun
        std::size_t activations = 0, gradients = 0;  // micro-batches whose message is there
        Work work = Work::none;
        double until_ms = 0;  // of `work`
    };

    void end_computing() {
        for (std::size_t s = 0; s < places_.size(); ++s) {
            Place& place = places_[s];
            if (place.work == Work::none || place.until_ms > now_ms_)
                continue;
            if (place.work == Work::forward && s < links_.size())
                messages_.add(s, true);
            if (place.work == Work::backward && s > 0 && links_[s - 1].sends_gradients)
                messages_.add(s - 1, false);
            place.work = Work::none;
        }
    }

    void end_messages() {
        std::erase_if(under_way_, [&](const PipelineMessage& message) {
            if (message.arrives_ms > now_ms_)
                return false;
            SimulatedLink& link = result_.links[message.link];
            if (message.is_forward) {
                ++places_[message.link + 1].activations;
                link.forward_busy_ms += links_[message.link].forward_ms;
            } else {
                ++places_[message.link].gradients;
                link.backward_busy_ms += links_[message.link].backward_ms;
            }
            return true;
        });
    }

    void begin_computing(std::size_t s) {
        Place& place = places_[s];
        if (place.work != Work::none)
            return;
        const std::size_t in_flight = place.forwards - place.backwards;
        if (place.forwards < micro_batches_ && in_flight < place.stage->most_in_flight) {
            if (place.forwards == place.activations)
                return;
            compute(s, Work::forward, place.stage->forward_ms[place.forwards++]);
            std::size_t& peak = result_.stages[s].peak_in_flight;
            peak = std::max(peak, place.forwards - place.backwards);
        } else if (place.backwards < micro_batches_ && place.backwards < place.gradients) {
            compute(s, Work::backward, place.stage->backward_ms[place.backwards++]);
        }
    }

    void compute(std::size_t s, Work work, double takes_ms) {
        places_[s].work = work;
        places_[s].until_ms = now_ms_ + takes_ms;
        result_.stages[s].busy_ms += takes_ms;
        result_.stages[s].end_ms = places_[s].until_ms;
    }

    double next_ms() const {
        double next_ms = messages_.next_free_ms(now_ms_);
        for (const Place& place : places_)
            if (place.work != Work::none)
                next_ms = std::min(next_ms, place.until_ms);
        for (const PipelineMessage& message : under_way_)
            next_ms = std::min(next_ms, message.arrives_ms);
        return next_ms;
    }

    SimulatedPipeline summary() {
        double busy_ms = 0;
        for (const SimulatedStage& stage : result_.stages) {
            result_.makespan_ms = std::max(result_.makespan_ms, stage.end_ms);
            busy_ms += stage.busy_ms;
        }
        for (SimulatedStage& stage : result_.stages)
            stage.idle_ms = result_.makespan_ms - stage.busy_ms;
        const double available_ms = static_cast<double>(places_.size()) * result_.makespan_ms;
        result_.bubble = available_ms > 0 ? 1 - busy_ms / available_ms : 0;
        return result_;
    }

    std::span<const PipelineLink> links_;
    std::size_t micro_batches_ = 0;
    std::vector<Place> places_;  // by stage
    MessageQueue messages_;
    std::vector<PipelineMessage> under_way_;
    double now_ms_ = 0;
    SimulatedPipeline result_;
};

}  // namespace

SimulatedPipeline simulate_pipeline(std::span<const PipelineStage> stages,
                                    std::span<const PipelineLink> links) {
    return OneForwardOneBackward{stages, links}.run();
}

std::size_t most_in_flight(std::size_t stages, std::size_t stage, std::size_t extra) {
    HETSEQ_ASSERT(stage < stages);
    const std::size_t behind = stages - 1 - stage;
    return 1 + behind + std::min(extra, behind);
}

}  // namespace hetseq
