#pragma once

#include <optional>

#include "hetseq/session/pipeline/layout_choice.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;
struct Parts;
struct RunSettings;

/// Collective; the same on all ranks. How the ranks train as --virtual-workers and --stage-units
/// say: the cuts that were given, or the fastest by what units, links and memory were measured to
/// take, perhaps on some of the ranks. "auto" compares all layouts, data parallelism among them.
/// `saves`: whether checkpoints are written. `recorded`: the choice of an earlier start that asked
/// the same; it is taken if the model still has as many units. Throws BadConfig on all ranks for a
/// model that cannot be cut, and where no cut fits.
LayoutChoice choose_layout(const MpiEnvironment& environment,
                           const HostComm& world,
                           const RunSettings& settings,
                           const Parts& parts,
                           bool saves,
                           const std::optional<LayoutChoice>& recorded = {});

}  // namespace hetseq
