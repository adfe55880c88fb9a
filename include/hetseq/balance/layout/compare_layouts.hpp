#pragma once

#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"

namespace hetseq {

/// Layouts that may be the fastest, planned by `plan_workers`: those that fit first, of these the
/// fastest, and each only once. Ties go to fewer ranks, then to the earlier of
/// - data parallelism: on all ranks; on those that hold the model; without the slowest classes;
///   without the slowest hosts; and with the optimizer's state cut, where that lets more ranks
///   hold the model;
/// - one worker of all ranks, and one of each host (Park et al., HetPipe, USENIX ATC 2020: NP), or
///   of each two, four or eight;
/// - n workers, over which each class is dealt evenly (ED), so that like stages lie on one host
///   where it has ranks enough;
/// - the ranks that hold the model, each alone, beside the others as one worker, as workers of
///   their hosts, and as n workers.
/// All numbers of hosts, and all n, up to 8 are tried. Above that, one in each factor of the square
/// root of two is tried (beside others, of two), and what divides all classes' numbers. 1,024 ranks
/// of 4 classes on 128 hosts take some 4 seconds for 26 units and a size, 64 ranks somewhat longer.
std::vector<LayoutPlan> compare_layouts(const LayoutProblem& problem);

}  // namespace hetseq
