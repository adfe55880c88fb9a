#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "hetseq/balance/pipeline/partition_chain.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

namespace hetseq {

/// Times and memory of one cut of a chain. Times are rounded by `rounded_ms`.
struct CutCosts {
    struct Stage {
        double forward_ms = 0, backward_ms = 0;  // of a micro-batch
        double fixed_mb = 0;                     // whatever is in flight
        double in_flight_mb = 0;                 // for each micro-batch in flight
        double usable_mb = 0;
        std::optional<std::size_t> host = {};  // as in PipelineStage

        StageMemory memory(std::size_t in_flight) const;
    };
    /// Of tied parameters' gradients, at the end of an update.
    struct Sum {
        std::vector<std::size_t> stages;    // that read them
        std::vector<double> sends_ms = {};  // of two stages: what each sends when it is through
        double together_ms = 0;             // of more: from when the last one is through
    };

    std::vector<Stage> stages;
    std::vector<PipelineLink> links;  // one fewer
    std::vector<Sum> sums = {};
};

/// The longest of the stages and, by direction, of the links and of what a stage's messages take of
/// its host's card [ms]. Other stages of the host are left out.
double period_ms(const CutCosts& costs);
/// One micro-batch alone, forward and backward [ms].
double latency_ms(const CutCosts& costs);
/// (micro-batches - 1) * period + latency [ms].
double score_ms(std::size_t micro_batches, double period_ms, double latency_ms);

/// Throws InternalError unless the stages, none of which is empty, follow each other from the first
/// of `units` to the last.
void check_stages(std::span<const ChainStage> stages, std::size_t units);

/// The numbers of a cut for so many micro-batches > 0; its stages are left empty.
PipelineCut evaluate(const CutCosts& costs, std::size_t micro_batches, std::size_t extra_in_flight);

/// The same with as many more in flight than `cut` has, which `evaluate` made, as memory allows and
/// make it faster.
PipelineCut with_more_in_flight(const CutCosts& costs, std::size_t micro_batches, PipelineCut cut);

}  // namespace hetseq
