#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/balance/layout/compared_layout.hpp"
#include "hetseq/balance/layout/measured_chain.hpp"
#include "hetseq/session/pipeline/pipeline_layout.hpp"

namespace hetseq {

struct Summary;

/// How the ranks of a job train.
struct LayoutChoice {
    std::optional<PipelineLayout> pipelines = {};  // none: each rank has a replica of its own
    std::vector<int> ranks = {};                   // that work, of the job; ascending
    std::vector<std::int64_t> micro_batches = {};  // of replicas, by `ranks`; 0: the largest
    bool shards_state = false;                     // the optimizer's state is cut over the ranks
    bool lends_to_checkpoints = false;             // ranks of the host have no copies for them
    std::vector<ComparedLayout> compared = {};     // the one that is taken first; empty: none was
    std::optional<MeasuredChain> chain = {};       // none: nothing was measured
};

/// Adds all that were compared, and what was measured for that, to `summary`.
void describe_layouts(const LayoutChoice& choice, Summary& summary);

/// For the start report: all that were compared; empty where none were.
std::string compared_report(const LayoutChoice& choice);

/// The same choice on all ranks: that of rank 0, as text.
std::string layout_choice_json(const LayoutChoice& choice);
LayoutChoice parse_layout_choice(const std::string& json);

}  // namespace hetseq
