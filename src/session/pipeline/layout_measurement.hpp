#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/session/pipeline/layout_choice.hpp"

#include "best_layout.hpp"

namespace hetseq {

class HostComm;
class Model;
class MpiEnvironment;
struct Parts;
struct RunSettings;

std::vector<int> all_ranks(const HostComm& world);

/// Collective; the same on all ranks. The fastest layout of those that are asked for, by what the
/// units of `model`, links, sums, the optimizer and memory are measured to take. `model` holds none
/// of its units. `capacity`: the largest micro-batch [samples or padded tokens]. `saves`: whether
/// checkpoints are written. Throws BadConfig on all ranks where memory allows none.
LayoutChoice measured_layout(const MpiEnvironment& environment,
                             const HostComm& world,
                             const RunSettings& settings,
                             const Parts& parts,
                             Model& model,
                             std::int64_t capacity,
                             const AskedLayout& asked,
                             bool saves);

}  // namespace hetseq
