#pragma once

#include <cstdint>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "hetseq/comm/topology.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/app/option_parser.hpp"
#include "hetseq/app/options.hpp"

namespace hetseq {

class HostComm;
class SharePlan;

/// Options as all ranks have them, typed.
struct SettledOptions {
    OptionValues values;  // effective ones
    Options options;
};

/// Everything settled before data or models are touched, the same on all ranks but for what
/// concerns a rank.
struct RankSetup {
    OptionValues
        values;  // effective ones, per-rank values as lists and the global batch as a number
    Options options;
    Topology topology;
    at::Device device = at::kCPU;
    at::ScalarType dtype = at::kFloat;
    std::vector<std::int64_t> threads;     // by rank
    std::vector<std::int64_t> capacities;  // samples a micro-batch, by rank
    std::int64_t batch_size = 0;           // samples, global
};

/// Collective. Throws on all ranks.
SettledOptions settle_options(const HostComm& world, const GivenOptions& given, const Parts& parts);
/// Collective. Finds devices, settles what depends on ranks and sets this rank's threads. Throws on
/// all ranks.
RankSetup set_up_ranks(const HostComm& world, SettledOptions settled);

/// What the speed of a rank depends on besides its device: its cores, memory, threads, capacity,
/// and how many ranks share its device.
std::string rank_limits(const RankSetup& setup, int rank);

/// The start report: hosts, ranks, devices, threads and shares of a full batch; where the ranks'
/// speed is known (`shares` of balance auto), their rates and the time their shares should take.
std::string start_report(const RankSetup& setup, SharePlan& shares);

}  // namespace hetseq
