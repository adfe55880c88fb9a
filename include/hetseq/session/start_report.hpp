#pragma once

#include <string>

namespace hetseq {

class BatchPlan;
class SharePlan;
struct RunSettings;

/// The start report: hosts, ranks, devices, threads and shares of a full batch; where the ranks'
/// speed is known (`shares` of balance auto), their rates and the time their shares should take.
std::string start_report(const RunSettings& settings, SharePlan& shares, const BatchPlan& plan);

}  // namespace hetseq
