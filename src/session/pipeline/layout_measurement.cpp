#include "layout_measurement.hpp"

#include <numeric>
#include <string>
#include <utility>

#include <ATen/ops/zeros.h>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/train/pipeline/link_costs.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/shares/update_cost.hpp"
#include "hetseq/session/ranks/rank_memory.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

#include "chain_measurement.hpp"
#include "chain_memory.hpp"
#include "layout_problem.hpp"
#include "measured_ranks.hpp"
#include "measured_units.hpp"
#include "rank_classes.hpp"
#include "sum_costs.hpp"
#include "tied_units.hpp"

namespace hetseq {

namespace {

std::vector<std::string> hosts_of(const Topology& topology) {
    std::vector<std::string> hosts;
    for (const RankInfo& rank : topology.ranks)
        hosts.push_back(rank.host);
    return hosts;
}

// Collective.
MeasuredLinks measured_links(const MpiEnvironment& environment,
                             const HostComm& world,
                             const RunSettings& settings) {
    std::vector<int> others = all_ranks(world);
    others.erase(others.begin() + world.rank());
    PeerChannel channel{world,
                        others,
                        settings.device,
                        environment.thread_support(),
                        {.lacks_cores = settings.lacks_cores(world.rank())}};
    return measure_links(world, channel, settings.device, hosts_of(settings.topology));
}

// Of what a rank on a CPU computes, messages take their processor time, unless it has a core more
// than threads. A part of a core is as much slower at them.
std::vector<double> message_ms_per_mb(const RunSettings& settings,
                                      const std::vector<double>& cpu_ms_per_mb) {
    std::vector<double> ms;
    for (const RankInfo& info : settings.topology.ranks)
        ms.push_back(settings.has_core_to_spare(info.rank)
                         ? 0
                         : cpu_ms_per_mb[static_cast<std::size_t>(info.rank)] /
                               std::min(info.cpu_share, 1.0));
    return ms;
}

// Collective. By rank: the optimizer's step, and the norm [ms a MiB of values].
std::vector<double> optimizer_ms_per_mb(const HostComm& world,
                                        const RunSettings& settings,
                                        const Parts& parts) {
    constexpr std::int64_t elements = std::int64_t{1} << 21;
    return world.all_gather(agree_on(world, [&] {
        TensorRegistry some;
        some.register_parameter(
            "values",
            at::zeros(
                {elements},
                at::TensorOptions(parameter_type(settings.precision)).device(settings.device)));
        const FlatParameters values{some, [](const std::string&) { return true; }};
        const PartOptions& options = settings.options().parts;
        const UpdateCost cost = measure_update(values, [&](FlatParameters& parameters) {
            return parts.optimizers.get(options.optimizer.name)(parameters, options);
        });
        return cost.ms / (static_cast<double>(values.values().nbytes()) / bytes_of_mib);
    }));
}

// Collective. What is measured, and chosen by it.
class LayoutMeasurement {
public:
    LayoutMeasurement(const MpiEnvironment& environment,
                      const HostComm& world,
                      const RunSettings& settings,
                      const Parts& parts,
                      Model& model,
                      bool saves)
        : environment_{environment},
          world_{world},
          settings_{settings},
          parts_{parts},
          model_{model},
          saves_{saves},
          data_{world, environment.thread_support() == ThreadSupport::multiple},
          feed_{data_, required_data(settings.options()), settings, parts, model, Shuffle::yes} {}

    LayoutChoice best(std::int64_t capacity, const AskedLayout& asked) {
        log::info("measuring the units of the model on " + count_text(world_.size(), "rank"));
        const std::vector<MeasuredSize> sizes =
            measure_chain(world_, settings_, feed_, model_, capacity);
        const CostsBySize costs = gathered_costs(world_, sizes);
        const MeasuredRanks measured = measured_ranks(sizes, costs);
        return parse_layout_choice(world_.broadcast(
            agree_on(world_,
                     [&] {
                         if (world_.rank() != 0)
                             return std::string();
                         LayoutChoice choice =
                             best_layout(settings_, asked, sizes, costs, measured);
                         choice.chain =
                             measured_units(settings_, model_.chain(), sizes, costs, measured);
                         return layout_choice_json(choice);
                     }),
            0));
    }

private:
    MeasuredRanks measured_ranks(const std::vector<MeasuredSize>& sizes, const CostsBySize& costs) {
        MeasuredLinks links = measured_links(environment_, world_, settings_);
        const double sums_factor =
            measured_sum_factor(environment_, world_, settings_, links.between);
        std::vector<double> optimizer_ms = optimizer_ms_per_mb(world_, settings_, parts_);
        // What libraries have taken as they were used stays, and what was measured with does not.
        PeakMemory::release();
        return {rank_classes(settings_, all_ranks(world_), costs.front()),
                std::move(links.between),
                memory(),
                trains_up_to(model_),
                tied_units(model_,
                           sent_type(settings_).value_or(parameter_type(settings_.precision)),
                           filled_by_batch(sizes, costs)),
                settings_.device.is_cpu(),
                std::move(optimizer_ms),
                sums_factor,
                message_ms_per_mb(settings_, links.cpu_ms_per_mb)};
    }

    ChainMemory memory() {
        const Options& options = settings_.options();
        const double data_mb = static_cast<double>(feed_.corpus().cache_bytes()) / bytes_of_mib *
                               (options.valid_data.empty() ? 1 : 2) /
                               settings_.topology.ranks_on_host_of(world_.rank());
        return chain_memory(world_,
                            settings_,
                            parts_,
                            model_,
                            {memory_in_use_mb(settings_.device), data_mb},
                            saves_);
    }

    const MpiEnvironment& environment_;
    const HostComm& world_;
    const RunSettings& settings_;
    const Parts& parts_;
    Model& model_;
    bool saves_;
    DataContext data_;
    Feed feed_;
};

}  // namespace

std::vector<int> all_ranks(const HostComm& world) {
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

LayoutChoice measured_layout(const MpiEnvironment& environment,
                             const HostComm& world,
                             const RunSettings& settings,
                             const Parts& parts,
                             Model& model,
                             std::int64_t capacity,
                             const AskedLayout& asked,
                             bool saves) {
    return LayoutMeasurement(environment, world, settings, parts, model, saves)
        .best(capacity, asked);
}

}  // namespace hetseq
