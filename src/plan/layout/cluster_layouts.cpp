#include "hetseq/plan/layout/cluster_layouts.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/balance/layout/compare_layouts.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/plan/all_reduce_time.hpp"
#include "hetseq/plan/layout/layer_times.hpp"

#include "layer_groups.hpp"

namespace hetseq {

namespace {

constexpr double enough_mb = 1e12;  // of memory, where none is said
constexpr double most_batch_ms = 1e9;

// What the problem's functions read.
struct Described {
    const Cluster& cluster;
    std::vector<PlannedRank> ranks;
    std::vector<std::size_t> devices;         // by class
    std::vector<LayerGroup> layers;           // a unit of the chain each
    std::vector<TiedUnits> tied;              // as the cluster has them
    std::vector<double> parameters_up_to{0};  // by unit, tied ones in each

    const NodeClass& node(int rank) const {
        return cluster.nodes[ranks[static_cast<std::size_t>(rank)].node];
    }
    int host(int rank) const { return ranks[static_cast<std::size_t>(rank)].host; }
    const DeviceClass& device(std::size_t device_class) const {
        return cluster.devices[devices[device_class]];
    }
    const Link& intra(const NodeClass& of) const {
        return of.intra ? *of.intra : cluster.network.intra;
    }
    const Link& inter(const NodeClass& of) const {
        return of.inter ? *of.inter : cluster.network.inter;
    }
    double parameters(std::size_t begin, std::size_t end) const {
        double sum = parameters_up_to[end] - parameters_up_to[begin];
        for (std::size_t t = 0; t < tied.size(); ++t) {
            const auto readers = std::ranges::count_if(
                tied[t].units, [&](std::size_t unit) { return begin <= unit && unit < end; });
            sum -= static_cast<double>(std::max<std::ptrdiff_t>(readers - 1, 0)) *
                   cluster.tied[t].parameters;
        }
        return std::max(sum, 0.0);
    }
    double all_parameters() const { return cluster.layers_parameters(); }
    // Of a parameter's gradient, as it is sent.
    double sent_mb() const {
        return cluster.model.bytes / bytes_of_mib / std::max(all_parameters(), 1.0);
    }
};

// A layer that shares parameters is alone of its class, so that it is one unit.
void add_tied(Described& all) {
    for (const TiedLayers& tied : all.cluster.tied) {
        TiedUnits& units = all.tied.emplace_back();
        units.gradients_mb = all.sent_mb() * tied.parameters;
        units.filled = tied.filled;
        for (const std::size_t layer : tied.layers)
            for (std::size_t unit = 0; unit < all.layers.size(); ++unit)
                if (all.layers[unit].layer == &all.cluster.layers[layer])
                    units.units.push_back(unit);
    }
}

std::shared_ptr<const Described> described(const Cluster& cluster) {
    auto all = std::make_shared<Described>(
        Described{cluster, planned_ranks(cluster), {}, layer_groups(cluster), {}});
    for (std::size_t d = 0; d < cluster.devices.size(); ++d)
        if (std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [&](const NodeClass& node) {
                return node.device == d && node.count > 0;
            }))
            all->devices.push_back(d);
    for (const LayerGroup& group : all->layers)
        all->parameters_up_to.push_back(all->parameters_up_to.back() +
                                        static_cast<double>(group.count) * group.layer->parameters);
    add_tied(*all);
    return all;
}

ChainLink chain_link(const Link& link) {
    return {.latency_ms = link.message_ms(0),
            .ms_per_mb = Link{0, link.bandwidth_gb}.message_ms(bytes_of_mib)};
}

ChainLink link_between(const Described& all, int from, int to) {
    if (all.host(from) == all.host(to))
        return chain_link(all.intra(all.node(from)));
    return chain_link(slower(all.inter(all.node(from)), all.inter(all.node(to))));
}

double sum_ms(const Described& all, std::span<const int> ranks, double mb) {
    std::vector<std::int64_t> on_host(static_cast<std::size_t>(all.ranks.back().host) + 1, 0);
    Route route{.ranks = std::ssize(ranks), .nodes = 0, .gpus = 0, .intra = {}, .inter = {}};
    for (const int rank : ranks) {
        std::int64_t& here = on_host[static_cast<std::size_t>(all.host(rank))];
        const NodeClass& node = all.node(rank);
        if (++here == 1) {
            ++route.nodes;
            route.inter = slower(route.inter, all.inter(node));
        } else {
            route.intra = slower(route.intra, all.intra(node));
        }
        route.gpus = std::max(route.gpus, here);
    }
    return all_reduce_ms(all.cluster.network.algorithm, route, mb * bytes_of_mib);
}

ChainDevices chain_devices(const Described& all, std::size_t device_class, std::int64_t units) {
    const DeviceClass& device = all.device(device_class);
    const double backward = all.cluster.model.backward_fraction;
    ChainDevices devices{.count = 0};
    for (const NodeClass& node : all.cluster.nodes)
        if (node.device == all.devices[device_class])
            devices.count += static_cast<std::size_t>(node.gpus * node.count);
    for (const auto& [layer, count] : all.layers) {
        const double ms = static_cast<double>(count) * layer_ms(all.cluster, *layer, device, units);
        devices.forward_ms.push_back((1 - backward) * ms);
        devices.backward_ms.push_back(backward * ms);
    }
    devices.memory_mb = device.memory_mib > 0 ? usable_memory * device.memory_mib : enough_mb;
    devices.process_mb = device.process_mib;
    devices.message_ms_per_mb = device.message_ms_per_mib;
    return devices;
}

// Values, gradients and the state, or a part of that.
double state_mb(const Described& all, double parameters, std::size_t state_over) {
    const double tensors =
        2 + static_cast<double>(all.cluster.model.state_tensors) / static_cast<double>(state_over);
    return tensors * bytes_of_fp32 * parameters / bytes_of_mib;
}

LayoutProblem::Size size_of(const std::shared_ptr<const Described>& all, std::int64_t units) {
    LayoutProblem::Size size{.micro_batch = units, .chain = {}};
    ChainProblem& chain = size.chain;
    const auto micro_batch = static_cast<double>(units);
    for (std::size_t c = 0; c < all->devices.size(); ++c)
        chain.devices.push_back(chain_devices(*all, c, units));
    chain.links.assign(
        all->devices.size(),
        std::vector<ChainLink>(all->devices.size(), chain_link(all->cluster.network.inter)));
    for (const auto& [layer, count] : all->layers) {
        chain.activations_mb.push_back(micro_batch * layer->output_mib);
        chain.gradients_mb.push_back(micro_batch * layer->output_mib);
        chain.activations_mb_kept.push_back(micro_batch * static_cast<double>(count) *
                                            layer->kept_mib);
        chain.workspace_mb.push_back(micro_batch * layer->workspace_mib);
    }
    chain.tied = all->tied;
    chain.state_mb = [all](std::size_t begin, std::size_t end, std::size_t) {
        return state_mb(*all, all->parameters(begin, end), 1);
    };
    return size;
}

void check_batch(const Cluster& cluster) {
    const std::int64_t batch = cluster.batch();
    const std::vector<std::int64_t>& sizes = cluster.job.micro_batches;
    if (std::any_of(
            sizes.begin(), sizes.end(), [&](std::int64_t units) { return batch % units == 0; }))
        return;
    std::vector<std::string> texts;
    for (const std::int64_t units : sizes)
        texts.push_back(std::to_string(units));
    throw BadConfig(
        "no micro-batch divides the batch of " + count_text(batch, "unit"),
        "'micro-batches' are " + join(texts, ", ") + ", and an update is whole micro-batches",
        "add one that does to 'micro-batches', or change the batch");
}

void check_ranks(const Cluster& cluster) {
    if (cluster.ranks() > most_compared_ranks)
        throw BadConfig("the cluster has " + std::to_string(cluster.ranks()) +
                            " ranks, too many to compare layouts",
                        "at most " + std::to_string(most_compared_ranks) + " are compared",
                        "lower 'count' or 'gpus', or remove the layers");
}

// Pipelines are simulated in whole nanoseconds.
void check_times(const LayoutProblem& problem) {
    const LayoutProblem::Size& smallest = problem.sizes.back();
    const double micro_batches =
        static_cast<double>(problem.batch) / static_cast<double>(smallest.micro_batch);
    for (const ChainDevices& devices : smallest.chain.devices) {
        double ms = 0;
        for (std::size_t u = 0; u < problem.units(); ++u)
            ms += devices.forward_ms[u] + devices.backward_ms[u];
        if (ms * micro_batches > most_batch_ms)
            throw BadConfig("a device takes more than 10^9 ms for the batch",
                            "layouts are compared up to that",
                            "check 'gflop', 'tflops' and 'layer-ms', or lower the batch");
    }
}

// Stages of units become those of layers.
void count_layers(const std::vector<LayerGroup>& groups, std::vector<LayoutPlan>& layouts) {
    std::vector<std::size_t> layers_up_to{0};
    for (const LayerGroup& group : groups)
        layers_up_to.push_back(layers_up_to.back() + static_cast<std::size_t>(group.count));
    for (LayoutPlan& layout : layouts)
        for (WorkerPlan& worker : layout.workers)
            for (ChainStage& stage : worker.stages) {
                stage.begin = layers_up_to[stage.begin];
                stage.end = layers_up_to[stage.end];
            }
}

}  // namespace

std::vector<PlannedRank> planned_ranks(const Cluster& cluster) {
    std::vector<PlannedRank> ranks;
    int host = 0;
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node)
        for (std::int64_t i = 0; i < cluster.nodes[node].count; ++i, ++host)
            ranks.insert(ranks.end(),
                         static_cast<std::size_t>(cluster.nodes[node].gpus),
                         PlannedRank{node, host});
    return ranks;
}

LayoutProblem layout_problem(const Cluster& cluster) {
    HETSEQ_ASSERT(!cluster.layers.empty() && cluster.ranks() > 0);
    check_ranks(cluster);
    check_batch(cluster);
    const std::shared_ptr<const Described> all = described(cluster);
    LayoutProblem problem;
    problem.batch = cluster.batch();
    for (const std::int64_t units : cluster.job.micro_batches)
        if (units <= problem.batch)
            problem.sizes.push_back(size_of(all, units));
    check_times(problem);
    for (const PlannedRank& rank : all->ranks) {
        const auto of =
            std::find(all->devices.begin(), all->devices.end(), cluster.nodes[rank.node].device);
        problem.class_of.push_back(static_cast<std::size_t>(of - all->devices.begin()));
        problem.host_of.push_back(rank.host);
    }
    problem.link = [all](int from, int to) { return link_between(*all, from, to); };
    problem.all_reduce_ms = [all](std::span<const int> ranks, double mb) {
        return sum_ms(*all, ranks, mb);
    };
    problem.gradients_mb = [all, sent_mb = all->sent_mb()](std::size_t begin, std::size_t end) {
        return sent_mb * all->parameters(begin, end);
    };
    const double part = 1 / std::max(all->all_parameters(), 1.0);  // a parameter's of the whole
    problem.optimizer_ms = [all, part](std::size_t begin, std::size_t end, std::size_t of) {
        return all->device(of).update_ms * part * all->parameters(begin, end);
    };
    if (cluster.model.state_tensors > 0)
        problem.sharded_state_mb = [all](std::size_t, std::size_t over) {
            return state_mb(*all, all->all_parameters(), over);
        };
    return problem;
}

std::vector<LayoutPlan> plan_layouts(const Cluster& cluster) {
    if (cluster.layers.empty())
        return {};
    std::vector<LayoutPlan> layouts = compare_layouts(layout_problem(cluster));
    count_layers(layer_groups(cluster), layouts);
    return layouts;
}

}  // namespace hetseq
