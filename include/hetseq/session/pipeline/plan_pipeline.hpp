#pragma once

#include <optional>

#include "hetseq/session/pipeline/pipeline_layout.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;
struct Parts;
struct RunSettings;

/// Collective. How the ranks train as --virtual-workers and --stage-units say: the cut that was
/// given, or the fastest by what units, links and memory were measured to take, on some of the
/// worker's ranks. None: each rank has a replica of its own. `saves`: whether checkpoints are
/// written. Throws BadConfig on all ranks for a model that cannot be cut, and where no cut fits.
std::optional<PipelineLayout> plan_pipeline(const MpiEnvironment& environment,
                                            const HostComm& world,
                                            const RunSettings& settings,
                                            const Parts& parts,
                                            bool saves);

}  // namespace hetseq
