#pragma once

#include <span>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

/// What a stage needs of its device's memory, and what the device has [MiB].
struct StageMemory {
    double needed_mb = 0;
    double usable_mb = 0;

    /// Negative where something is left.
    double overshoot_mb() const noexcept { return needed_mb - usable_mb; }
};

struct PipelineCut {
    std::vector<ChainStage> stages;
    std::vector<StageMemory> memory;  // by stage
    double predicted_ms = 0;          // an update, as `simulate_pipeline` finds it, and until tied
                                      // parameters are summed
    double period_ms = 0;  // the longest forward and backward of a stage, transfer of a link, or
                           // use of a host's card by a stage's messages
    double score_ms = 0;   // (micro-batches - 1) * period + time of one micro-batch alone
    double bubble = 0;     // part of the stages' time that is idle
    std::size_t extra_in_flight = 0;  // micro-batches, as `most_in_flight` takes them

    /// The stage whose memory overshoots most, or has least left.
    std::size_t tightest() const;
    bool fits() const { return memory[tightest()].overshoot_mb() <= 0; }
};

/// The fastest cut that memory allows. The 8 of the least score, found exactly, and the best single
/// stage are simulated. Ties go to fewer devices, then to the lower class and the earlier cut.
/// Devices may idle. Stage s of S has S - s micro-batches in flight, and needs process + state +
/// (S - s) * (activations kept + activations received) + activations sent + the largest workspace.
/// Where no cut fits, the result does not either: it is the one whose largest overshoot is least.
/// Costs units^2 * classes^3 * product over classes of (count + 1), for each period tried.
PipelineCut partition_chain(const ChainProblem& problem);

/// `cut` with as many more micro-batches in flight as memory allows and make it faster: they hide
/// slow links. Each more that is taken saves a hundredth of the time at least.
PipelineCut with_more_in_flight(const ChainProblem& problem, PipelineCut cut);

/// The numbers of a given cut, whether it fits or not. Its stages are not empty and follow each
/// other from the first unit to the last.
PipelineCut evaluate_cut(const ChainProblem& problem, std::span<const ChainStage> stages);

}  // namespace hetseq
