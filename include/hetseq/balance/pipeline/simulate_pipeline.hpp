#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace hetseq {

/// A stage of a pipeline: a device that computes its part of each micro-batch.
struct PipelineStage {
    std::vector<double> forward_ms;        // by micro-batch
    std::vector<double> backward_ms;       // by micro-batch
    std::size_t most_in_flight = 1;        // > 0; micro-batches whose forward is done and
                                           // backward not
    std::optional<std::size_t> host = {};  // its number; none: no other stage is on it
};

/// Between a stage and the next one. Each direction carries one message after another, while the
/// other direction is in use and devices compute; a sender does not wait. Between unlike hosts a
/// message needs the cards of both: a card carries one message out and one in at a time, in the
/// order in which they were ready. One that has to wait for a card lets pass others that need not.
struct PipelineLink {
    double forward_ms = 0;        // a message of activations, of one micro-batch
    double backward_ms = 0;       // a message of gradients
    bool sends_gradients = true;  // false: nothing trains in front, whose backward awaits none
    double front_card = 1;        // part of a message's time that the card of the stage in front is
                                  // taken for; less than 1: that card is faster than the link
    double behind_card = 1;       // as much of the next stage's card
};

struct SimulatedStage {
    double busy_ms = 0;
    double idle_ms = 0;  // of the makespan
    double end_ms = 0;   // of its last backward
    std::size_t peak_in_flight = 0;
};

struct SimulatedLink {
    double forward_busy_ms = 0;
    double backward_busy_ms = 0;
};

struct SimulatedPipeline {
    double makespan_ms = 0;  // until the last backward of any stage has ended
    double bubble = 0;       // 1 - sum busy / (stages * makespan)
    std::vector<SimulatedStage> stages;
    std::vector<SimulatedLink> links;
};

/// Computes an update by 1F1B with a flush (Narayanan et al. 2019; Fan et al. 2021): a stage does
/// its next forward while it has fewer than `most_in_flight` and forwards remain, and otherwise its
/// next backward. Stages have equally many micro-batches, links are one fewer than stages, and a
/// stage that gets gradients has at least as many in flight as the next one: else both would wait.
SimulatedPipeline simulate_pipeline(std::span<const PipelineStage> stages,
                                    std::span<const PipelineLink> links);

/// Micro-batches in flight at stage `stage` of `stages`: as many as there are stages from it to the
/// end. `extra` more hide slow links, but at most one for each stage behind it.
std::size_t most_in_flight(std::size_t stages, std::size_t stage, std::size_t extra = 0);

}  // namespace hetseq
