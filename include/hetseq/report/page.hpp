#pragma once

#include <span>
#include <string>

#include "hetseq/report/run_record.hpp"

namespace hetseq {

/// The report of `runs` as one HTML file that needs nothing else: no links, no scripts. It is
/// well-formed XML as well.
std::string report_page(std::span<const RunRecord> runs);

}  // namespace hetseq
