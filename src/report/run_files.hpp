#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/report/run_record.hpp"

// One file of a run each. What is not there or cannot be read is told in `missing`.
namespace hetseq::detail {

RunMetrics read_metrics(const std::filesystem::path& path, std::vector<std::string>& missing);

std::optional<RunSummary> read_summary(const std::filesystem::path& path,
                                       std::vector<std::string>& missing);

std::vector<AllocationFrom> read_allocations(const std::filesystem::path& path,
                                             std::vector<std::string>& missing);

}  // namespace hetseq::detail
