#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/report/run_record.hpp"

// One file of a run each. A file that is missing or cannot be read is named in `missing`.
namespace hetseq::detail {

RunMetrics read_metrics(const std::filesystem::path& path, std::vector<std::string>& missing);

std::optional<RunSummary> read_summary(const std::filesystem::path& path,
                                       std::vector<std::string>& missing);

std::vector<AllocationFrom> read_allocations(const std::filesystem::path& path,
                                             std::vector<std::string>& missing);

}  // namespace hetseq::detail
