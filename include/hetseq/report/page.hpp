#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hetseq/report/run_record.hpp"

namespace hetseq {

/// The report of `runs` as one HTML file that needs nothing else: no links, no scripts. It is
/// well-formed XML as well.
std::string report_page(std::span<const RunRecord> runs);

/// The text that each report page begins with.
std::string_view begin_of_report_page();

}  // namespace hetseq
