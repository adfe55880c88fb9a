#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/plan/memory_terms.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

/// What a run would do, and what the tried updates say about it.
struct DryRunReport {
    std::string checkpoint;    // that it would continue from; empty: it would start anew
    std::int64_t done = 0;     // updates, of the checkpoint
    std::int64_t updates = 0;  // of the whole run
    bool is_finished = false;  // nothing is left to do
    std::int64_t updates_per_epoch = 0;
    std::int64_t samples = 0;  // of the corpus
    std::int64_t parameters = 0;
    std::int64_t tried = 0;  // updates; 0: nothing is known of rate, time and memory
    Summary summary = {};    // of those
    std::vector<std::vector<MemoryTerm>> memory = {};  // that was reckoned with, by rank

    /// The time of the remaining updates, without validation and checkpoints [s].
    double seconds_left() const;
};

/// For people, in lines.
std::string dry_run_text(const DryRunReport& report, const Topology& topology);
/// One JSON object (docs/outputs.md).
std::string dry_run_json(const DryRunReport& report, const RunSettings& settings);

}  // namespace hetseq
