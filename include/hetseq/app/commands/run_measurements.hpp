#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/plan/measured_run.hpp"
#include "hetseq/session/options.hpp"

namespace hetseq {

/// Reads what the planner needs of a run's folder: summary.json; config.cfg for the batch, the
/// bucket and the micro-batches; the size of model.safetensors; the latter two where they are
/// there. `table`: the options that its configuration may hold. Throws MissingInput without a
/// summary, BadData where it is none.
MeasuredRun read_measured_run(const std::string& folder, const OptionTable& table = option_table());

/// Gives the devices that name a file of measured costs what it holds; relative paths start at
/// `folder`. Says in the result, a sentence each, what it took. Throws MissingInput or BadData.
std::vector<std::string> fill_from_cost_files(Cluster& cluster,
                                              const std::filesystem::path& folder);

}  // namespace hetseq
