#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/balance/layout/measured_chain.hpp"
#include "hetseq/session/pipeline/pipeline_layout.hpp"

namespace hetseq {

struct Summary;

/// A layout that was weighed, as planned.
struct ComparedLayout {
    std::string name;       // "data parallelism on 4 ranks"
    std::size_t ranks = 0;  // that work
    double update_ms = 0;   // forward and backward, what they do not hide of the sums of gradients,
    double compute_ms = 0;  // and the optimizer
    double reduce_ms = 0;
    double memory = 0;      // that the fullest rank needs, over what it may use
    std::string why_not{};  // it does not fit
};

/// How the ranks of a job train.
struct LayoutChoice {
    std::optional<PipelineLayout> pipelines = {};  // none: each rank has a replica of its own
    std::vector<int> ranks = {};                   // that work, of the job; ascending
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
