#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/plan/measured_run.hpp"
#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// Reads what the planner needs from a run's folder: summary.json; if it exists, config.cfg for the
/// batch, the bucket and the micro-batches; and the size of model.safetensors, if it exists.
/// `table` has the options that the configuration may hold. Throws MissingInput if there is no
/// summary, BadData if the file is not a summary.
MeasuredRun read_measured_run(const std::string& folder, const OptionTable& table = option_table());

/// Gives each device that names a file of measured costs the contents of that file. Relative paths
/// start at `folder`. The result says what was taken, one sentence each. Throws MissingInput or
/// BadData.
std::vector<std::string> fill_from_cost_files(Cluster& cluster,
                                              const std::filesystem::path& folder);

}  // namespace hetseq
