#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// Messages of one direction of a link, or what needs none.
class Arrivals {
public:
    // All there from the start.
    void fill(std::size_t micro_batches) { at_ms_.assign(micro_batches, 0); }

    void send(double ready_ms, double message_ms) {
        const double begin_ms = at_ms_.empty() ? ready_ms : std::max(ready_ms, at_ms_.back());
        at_ms_.push_back(begin_ms + message_ms);
    }

    bool has(std::size_t micro_batch) const { return micro_batch < at_ms_.size(); }
    double operator[](std::size_t micro_batch) const { return at_ms_[micro_batch]; }

private:
    std::vector<double> at_ms_;  // by micro-batch
};

class OneForwardOneBackward {
public:
    OneForwardOneBackward(std::span<const PipelineStage> stages,
                          std::span<const PipelineLink> links)
        : links_{links} {
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
        places_.front().activations.fill(micro_batches_);
        for (std::size_t s = 0; s < places_.size(); ++s)
            if (s == links.size() || !links[s].sends_gradients)
                places_[s].gradients.fill(micro_batches_);
    }

    SimulatedPipeline run() {
        while (!is_done()) {
            bool has_moved = false;
            for (std::size_t s = 0; s < places_.size(); ++s)
                while (advance(s))
                    has_moved = true;
            HETSEQ_ASSERT(has_moved);  // else two neighbours wait for each other
        }
        return summary();
    }

private:
    struct Place {
        const PipelineStage* stage = nullptr;
        std::size_t forwards = 0, backwards = 0;  // done
        double free_ms = 0;                       // when the last of them ended
        Arrivals activations, gradients;          // that came here
    };

    bool is_done() const {
        return std::all_of(places_.begin(), places_.end(), [&](const Place& place) {
            return place.backwards == micro_batches_;
        });
    }

    // Does the next forward or backward of stage `s`; false if it is done, or its input was not
    // sent yet.
    bool advance(std::size_t s) {
        Place& place = places_[s];
        const std::size_t in_flight = place.forwards - place.backwards;
        if (place.forwards < micro_batches_ && in_flight < place.stage->most_in_flight)
            return place.activations.has(place.forwards) && forward(s);
        return place.backwards < micro_batches_ && place.gradients.has(place.backwards) &&
               backward(s);
    }

    bool forward(std::size_t s) {
        Place& place = places_[s];
        const std::size_t i = place.forwards++;
        compute(s, place.activations[i], place.stage->forward_ms[i]);
        if (s < links_.size()) {
            places_[s + 1].activations.send(place.free_ms, links_[s].forward_ms);
            result_.links[s].forward_busy_ms += links_[s].forward_ms;
        }
        std::size_t& peak = result_.stages[s].peak_in_flight;
        peak = std::max(peak, place.forwards - place.backwards);
        return true;
    }

    bool backward(std::size_t s) {
        Place& place = places_[s];
        const std::size_t i = place.backwards++;
        compute(s, place.gradients[i], place.stage->backward_ms[i]);
        if (s > 0 && links_[s - 1].sends_gradients) {
            places_[s - 1].gradients.send(place.free_ms, links_[s - 1].backward_ms);
            result_.links[s - 1].backward_busy_ms += links_[s - 1].backward_ms;
        }
        return true;
    }

    void compute(std::size_t s, double input_ms, double takes_ms) {
        places_[s].free_ms = std::max(places_[s].free_ms, input_ms) + takes_ms;
        result_.stages[s].busy_ms += takes_ms;
    }

    SimulatedPipeline summary() {
        for (const Place& place : places_)
            result_.makespan_ms = std::max(result_.makespan_ms, place.free_ms);
        double busy_ms = 0;
        for (SimulatedStage& stage : result_.stages) {
            stage.idle_ms = result_.makespan_ms - stage.busy_ms;
            busy_ms += stage.busy_ms;
        }
        const double available_ms = static_cast<double>(places_.size()) * result_.makespan_ms;
        result_.bubble = available_ms > 0 ? 1 - busy_ms / available_ms : 0;
        return result_;
    }

    std::span<const PipelineLink> links_;
    std::size_t micro_batches_ = 0;
    std::vector<Place> places_;  // by stage
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
