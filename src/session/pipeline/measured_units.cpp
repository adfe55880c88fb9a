#include "measured_units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "hetseq/util/quantity.hpp"
#include "hetseq/balance/median.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// start + n each, for n units of the batch.
struct Line {
    double start = 0, each = 0;
};

// Through two sizes; in proportion where there is one, or where that says otherwise.
Line line_through(double few, double few_ms, double many, double many_ms) {
    const double each = many > few ? (many_ms - few_ms) / (many - few) : 0;
    const double start = many_ms - many * each;
    return each > 0 && start >= 0 ? Line{start, each} : Line{0, many_ms / many};
}

// A batch may be smaller than what a rank can hold.
std::int64_t measured_with(const MeasuredSize& size) {
    return std::min(size.micro_batch, size.batch);
}

double median_ms(const std::vector<std::vector<UnitCost>>& by_rank,
                 const std::vector<int>& ranks,
                 std::size_t unit) {
    std::vector<double> ms;
    for (const int rank : ranks) {
        const UnitCost& cost = by_rank[static_cast<std::size_t>(rank)][unit];
        ms.push_back(cost.forward_ms + cost.backward_ms);
    }
    return median(std::move(ms));
}

MeasuredChain::Devices devices_of(const RunSettings& settings,
                                  const MeasuredRanks& measured,
                                  const std::vector<int>& ranks,
                                  const std::vector<MeasuredSize>& sizes,
                                  const CostsBySize& costs) {
    MeasuredChain::Devices devices{
        .name = settings.topology.rank(ranks.front()).device_name, .hosts = {}, .unit_ms = {}};
    for (const int rank : ranks)
        if (const std::string& host = settings.topology.rank(rank).host;
            std::find(devices.hosts.begin(), devices.hosts.end(), host) == devices.hosts.end())
            devices.hosts.push_back(host);
    double starts_ms = 0;
    for (std::size_t unit = 0; unit < costs.front().front().size(); ++unit) {
        const Line line = line_through(static_cast<double>(measured_with(sizes.back())),
                                       median_ms(costs.back(), ranks, unit),
                                       static_cast<double>(measured_with(sizes.front())),
                                       median_ms(costs.front(), ranks, unit));
        starts_ms += line.start;
        devices.unit_ms.push_back(line.each);
    }
    devices.message_ms_per_mb = measured.message_ms(ranks);
    devices.launch_ms = starts_ms / static_cast<double>(devices.unit_ms.size());
    return devices;
}

}  // namespace

// All ranks measure the same samples.
std::vector<double> filled_by_batch(const std::vector<MeasuredSize>& sizes,
                                    const CostsBySize& costs) {
    const std::vector<UnitCost>&few = costs.back().front(), &many = costs.front().front();
    std::vector<double> filled;
    for (std::size_t u = 0; u < many.size(); ++u)
        filled.push_back(cost_between(few[u],
                                      static_cast<double>(measured_with(sizes.back())),
                                      many[u],
                                      static_cast<double>(measured_with(sizes.front())),
                                      static_cast<double>(sizes.front().batch))
                             .filled);
    return filled;
}

MeasuredChain measured_units(const RunSettings& settings,
                             const std::vector<ChainUnit>& chain,
                             const std::vector<MeasuredSize>& sizes,
                             const CostsBySize& costs,
                             const MeasuredRanks& ranks) {
    MeasuredChain measured{.counts_tokens = settings.is_ragged()};
    for (const MeasuredSize& size : sizes)
        if (const std::int64_t units = measured_with(size);
            measured.micro_batches.empty() || units < measured.micro_batches.back())
            measured.micro_batches.push_back(units);
    const auto units = static_cast<double>(measured_with(sizes.front()));
    const double bytes = static_cast<double>(c10::elementSize(parameter_type(settings.precision)));
    for (std::size_t u = 0; u < chain.size(); ++u) {
        const UnitCost& cost = costs.front().front()[u];
        measured.units.push_back(
            {.kind = chain[u].kind,
             .parameters = ranks.memory.values_mb({u, u + 1}) * bytes_of_mib / bytes,
             .kept_mb = cost.kept_mb / units,
             .output_mb = cost.output_mb / units,
             .workspace_mb = cost.workspace_mb / units});
    }
    const auto sent_bytes = static_cast<double>(
        c10::elementSize(sent_type(settings).value_or(parameter_type(settings.precision))));
    for (const TiedUnits& tied : ranks.tied)
        measured.tied.push_back({.units = tied.units,
                                 .parameters = tied.gradients_mb * bytes_of_mib / sent_bytes,
                                 .filled = tied.filled});
    for (const std::vector<int>& like : ranks.classes.ranks)
        measured.devices.push_back(devices_of(settings, ranks, like, sizes, costs));
    return measured;
}

}  // namespace hetseq
