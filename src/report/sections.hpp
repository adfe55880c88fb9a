#pragma once

#include <span>
#include <string>

#include "hetseq/report/run_record.hpp"

// The parts of the page, each as HTML; empty where there is nothing to show.
namespace hetseq::detail {

/// The style sheet.
const char* style();

/// The runs' main numbers beside each other, what is missing and what hetseq advises.
std::string overview(std::span<const RunRecord> runs);

/// Figures of curves over updates, all runs in each.
std::string curves(std::span<const RunRecord> runs);

/// Figures of where the ranks' time went, of the allocations and of the bound, beside each other.
std::string balance(std::span<const RunRecord> runs);

std::string events(std::span<const RunRecord> runs);
std::string options(std::span<const RunRecord> runs);

}  // namespace hetseq::detail
