#pragma once

#include <string>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"

#include "layout_planner.hpp"

namespace hetseq {

/// Ranks cut into workers; some may be in none.
struct Division {
    std::string name;
    std::vector<std::vector<int>> workers;
    WorkerState state = WorkerState::whole;
};

/// Those that `compare_layouts` names, in its order, each once.
std::vector<Division> candidate_divisions(LayoutPlanner& planner);

}  // namespace hetseq
