#pragma once

#include <string>

#include "hetseq/balance/measured_run.hpp"

namespace hetseq {

/// Reads what the planner needs of a run's folder: summary.json; config.cfg for the batch, the
/// bucket and the micro-batches; the size of model.safetensors; the latter two where they are
/// there. Throws MissingInput without a summary, BadData where it is none.
MeasuredRun read_measured_run(const std::string& folder);

}  // namespace hetseq
