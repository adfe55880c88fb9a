#include "hetseq/plan/measured_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/plan/layout/cluster_layouts.hpp"
#include "hetseq/plan/time_points.hpp"
#include "hetseq/plan/update_simulator.hpp"

namespace hetseq {

namespace {

constexpr double lowest_gb = 1e-6;  // bandwidths between which the run's is looked for [GB/s]
constexpr double highest_gb = 1e4;
constexpr double most_rate = 1e6;  // units a millisecond
constexpr double least_layer_ms = 1e-9;

// The name of a host is not taken for a device's name.
bool is_host(const std::string& name, std::span<const MeasuredRun> runs) {
    return std::any_of(runs.begin(), runs.end(), [&](const MeasuredRun& run) {
        return std::any_of(run.ranks.begin(), run.ranks.end(), [&](const MeasuredRun::Rank& rank) {
            return rank.host == name;
        });
    });
}

// The part of a step that is neither computing nor waiting: reading, optimizer, bookkeeping. It is
// taken from the rank where it is least, because in the others it contains waiting for that rank's
// next batch.
double rest_ms(const MeasuredRun& run) {
    double least = run.step_ms;
    for (const MeasuredRun::Rank& rank : run.ranks)
        least = std::min(least, run.step_ms - rank.compute_ms - rank.wait_ms);
    return std::max(0.0, least);
}

[[noreturn]] void reject_device_of_stages(const std::string& device, const MeasuredRun& run) {
    const std::string problem =
        "the times of " + run.name + " say nothing of the device '" + device + "'";
    if (!run.chain)
        throw BadConfig(problem,
                        "its ranks were stages of pipelines whose cut was given, so no layer was "
                        "measured",
                        "name a run with --stage-units auto, or one without --virtual-workers");
    throw BadConfig(
        problem,
        "its ranks were stages of pipelines, and its layers are taken only for samples of one "
        "length, a batch that its micro-batches divide, at most " +
            std::to_string(most_compared_ranks) +
            " ranks, and a description without layers and parameters",
        "name a run without --virtual-workers, or change what is described");
}

[[noreturn]] void reject_device(const std::string& device,
                                const std::string& name,
                                std::span<const MeasuredRun> runs) {
    if (std::all_of(
            runs.begin(), runs.end(), [](const MeasuredRun& run) { return run.is_pipelined; }))
        reject_device_of_stages(device, runs.front());
    std::vector<std::string> names;
    for (const MeasuredRun& run : runs)
        for (const MeasuredRun::Rank& rank : run.ranks) {
            if (run.is_pipelined)
                continue;
            const std::string text = rank.host + " (" + rank.device + ")";
            if (rank.units > 0 && std::find(names.begin(), names.end(), text) == names.end())
                names.push_back(text);
        }
    throw BadConfig(
        "no rank of the run measures '" + name + "' for the device '" + device + "'",
        names.empty() ? "no rank had work" : "those with work are on " + join(names, ", "),
        "name a host or words of a device's name: measured = NAME in [device " + device + "]");
}

std::string points_text(const std::vector<TimePoint>& points) {
    std::vector<std::string> texts;
    for (const TimePoint& point : points) {
        std::string text =
            format_number(point.units) + " units in " + format_number(point.ms) + " ms";
        if (std::find(texts.begin(), texts.end(), text) == texts.end())
            texts.push_back(std::move(text));
    }
    if (texts.size() > 4)
        return std::to_string(points.size()) + " measured times";
    return join(texts, ", ");
}

// The runs' measurements of one device.
struct DeviceMeasurements {
    std::vector<StepCost> costs;
    std::vector<TimePoint> points;
    std::int64_t micro_batch = 0;
    double rest_ms = std::numeric_limits<double>::infinity();
};

DeviceMeasurements measurements_of(const std::string& name, std::span<const MeasuredRun> runs) {
    DeviceMeasurements measured;
    const bool by_host = is_host(name, runs);
    for (const MeasuredRun& run : runs)
        for (const MeasuredRun::Rank& rank : run.ranks) {
            if (run.is_pipelined)
                continue;
            if (by_host ? rank.host != name : !holds_words(rank.device, name))
                continue;
            if (rank.cost && rank.cost->micro_batch > 0)
                measured.costs.push_back(*rank.cost);
            else if (rank.units <= 0 || rank.compute_ms <= 0)
                continue;
            else
                measured.points.push_back({rank.units, rank.compute_ms});
            measured.micro_batch = std::max(measured.micro_batch, rank.micro_batch);
            measured.rest_ms = std::min(measured.rest_ms, rest_ms(run));
        }
    return measured;
}

const StepCost& of_median_rate(std::vector<StepCost>& costs) {
    const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
    std::nth_element(costs.begin(), middle, costs.end(), [](const StepCost& a, const StepCost& b) {
        return a.rate() < b.rate();
    });
    return *middle;
}

const std::string& name_in_run(const DeviceClass& device) {
    return device.measured.empty() ? device.name : device.measured;
}

std::string fill_device(DeviceClass& device, std::span<const MeasuredRun> runs) {
    const std::string& name = name_in_run(device);
    DeviceMeasurements measured = measurements_of(name, runs);
    if (measured.costs.empty() && measured.points.empty())
        reject_device(device.name, name, runs);
    if (measured.micro_batch > 0)
        device.cost.micro_batch = std::min(device.cost.micro_batch, measured.micro_batch);
    if (!device.update_given)
        device.update_ms = measured.rest_ms;
    const std::string besides = format_number(device.update_ms) + " ms besides";
    if (!measured.costs.empty()) {
        take_cost(device, of_median_rate(measured.costs), "the run's rank on '" + name + "'");
        return device.name + ": the cost of " + std::to_string(measured.costs.size()) +
               (measured.costs.size() == 1 ? " rank" : " ranks") + " on '" + name + "', " +
               format_number(1000 * device.cost.rate()) + " units/s, " + besides;
    }
    const LineFit fitted = fit_times(measured.points, device.cost.micro_batch);
    take_cost(device, fitted.cost, "the run's time on '" + name + "'");
    return device.name + ": " + points_text(measured.points) + " as measured on '" + name + "', " +
           besides +
           (fitted.worst_error > 0.05 ? "; a line misses one of them by " +
                                            format_number(100 * fitted.worst_error, 2) + " %"
                                      : "");
}

double total(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

// By name of a host, or by words of a device's name: of those, the one of median time.
const MeasuredChain::Devices* measured_devices(const MeasuredChain& chain,
                                               const DeviceClass& device,
                                               bool by_host) {
    const std::string& name = name_in_run(device);
    std::vector<const MeasuredChain::Devices*> found;
    for (const MeasuredChain::Devices& measured : chain.devices)
        if (by_host ? std::find(measured.hosts.begin(), measured.hosts.end(), name) !=
                          measured.hosts.end()
                    : holds_words(measured.name, name))
            found.push_back(&measured);
    if (found.empty())
        return nullptr;
    const auto middle = found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2);
    std::nth_element(found.begin(), middle, found.end(), [](const auto* a, const auto* b) {
        return total(a->unit_ms) < total(b->unit_ms);
    });
    return *middle;
}

// Units of one kind that follow each other.
struct LayerUnits {
    LayerClass layer;
    std::size_t begin = 0, end = 0;
};

bool is_tied(const MeasuredChain& chain, std::size_t unit) {
    return std::ranges::any_of(chain.tied, [&](const MeasuredChain::Tied& tied) {
        return std::ranges::find(tied.units, unit) != tied.units.end();
    });
}

// Units that share parameters stay alone.
std::vector<LayerUnits> layers_of(const MeasuredChain& chain) {
    std::vector<LayerUnits> layers;
    for (std::size_t u = 0; u < chain.units.size(); ++u) {
        const MeasuredChain::Unit& unit = chain.units[u];
        const MeasuredChain::Unit* const before = u > 0 ? &chain.units[u - 1] : nullptr;
        if (before != nullptr && before->kind == unit.kind &&
            before->parameters == unit.parameters && !is_tied(chain, u) && !is_tied(chain, u - 1)) {
            layers.back().end = u + 1;
            ++layers.back().layer.count;
            continue;
        }
        const auto same = std::count_if(layers.begin(), layers.end(), [&](const LayerUnits& one) {
            return chain.units[one.begin].kind == unit.kind;
        });
        layers.push_back({{.name = unit.kind + (same > 0 ? " " + std::to_string(same + 1) : ""),
                           .parameters = unit.parameters,
                           .kept_mib = unit.kept_mb,
                           .output_mib = unit.output_mb,
                           .workspace_mib = unit.workspace_mb},
                          u,
                          u + 1});
    }
    return layers;
}

std::vector<TiedLayers> tied_layers(const MeasuredChain& chain,
                                    const std::vector<LayerUnits>& layers) {
    std::vector<TiedLayers> all;
    for (const MeasuredChain::Tied& tied : chain.tied) {
        TiedLayers& own = all.emplace_back();
        own.parameters = tied.parameters;
        own.filled = tied.filled;
        for (const std::size_t unit : tied.units)
            own.layers.push_back(static_cast<std::size_t>(
                std::ranges::find(layers, unit, &LayerUnits::begin) - layers.begin()));
    }
    return all;
}

// Whether layouts of what is described can be compared by the chain.
bool takes_chain(const Cluster& cluster, const MeasuredRun& run) {
    if (!run.chain || run.chain->counts_tokens || !cluster.layers.empty() ||
        cluster.model.parameters > 0 || cluster.ranks() > most_compared_ranks)
        return false;
    const std::int64_t batch = cluster.batch();
    const auto& sizes = run.chain->micro_batches;
    return std::any_of(
        sizes.begin(), sizes.end(), [&](std::int64_t units) { return batch % units == 0; });
}

std::string fill_layers(Cluster& cluster, const MeasuredRun& run) {
    std::vector<const MeasuredChain::Devices*> measured;
    for (const DeviceClass& device : cluster.devices) {
        measured.push_back(
            measured_devices(*run.chain, device, is_host(name_in_run(device), {&run, 1})));
        if (measured.back() == nullptr)
            return "layers: not taken from " + run.name + ", which has no times of the device '" +
                   device.name + "'";
    }
    const std::vector<LayerUnits> layers = layers_of(*run.chain);
    cluster.tied = tied_layers(*run.chain, layers);
    for (const LayerUnits& units : layers) {
        cluster.layers.push_back(units.layer);
        for (std::size_t d = 0; d < measured.size(); ++d) {
            double ms = 0;
            for (std::size_t u = units.begin; u < units.end; ++u)
                ms += measured[d]->unit_ms[u];
            cluster.devices[d].layer_ms[units.layer.name] =
                std::max(ms / static_cast<double>(units.layer.count), least_layer_ms);
        }
    }
    for (std::size_t d = 0; d < measured.size(); ++d) {
        cluster.devices[d].launch_ms = measured[d]->launch_ms;
        cluster.devices[d].message_ms_per_mib = measured[d]->message_ms_per_mb;
    }
    cluster.job.micro_batches = run.chain->micro_batches;
    return "layers: " + count_text(std::ssize(run.chain->units), "unit") + " of the model in " +
           run.name + ", as they were measured there";
}

// What the run reduced, whatever model is described.
ModelSize model_of(const Cluster& cluster, const MeasuredRun& run) {
    ModelSize model = cluster.model;
    if (run.model_bytes > 0)
        model.bytes = run.model_bytes * run.sent_share;
    if (run.bucket_mib > 0)
        model.bucket_mib = run.bucket_mib * run.sent_share;
    return model;
}

// The run itself as a cluster: a class of nodes for each host, with the shares its ranks had.
struct RunLayout {
    Cluster cluster;
    std::vector<RankGroup> groups;
};

RunLayout layout_of(const Cluster& cluster, const MeasuredRun& run) {
    RunLayout layout;
    layout.cluster.model = model_of(cluster, run);
    layout.cluster.network = cluster.network;
    std::map<std::string, std::size_t> hosts;
    for (const MeasuredRun::Rank& rank : run.ranks) {
        const auto [host, is_new] = hosts.emplace(rank.host, layout.cluster.nodes.size());
        if (is_new)
            layout.cluster.nodes.push_back(
                {.name = rank.host, .gpus = 0, .intra = {}, .inter = {}});
        ++layout.cluster.nodes[host->second].gpus;
        const auto micro_batches =
            rank.micro_batch > 0 ? std::ceil(rank.units / static_cast<double>(rank.micro_batch))
                                 : 1;
        layout.groups.push_back({.node = host->second,
                                 .ranks = 1,
                                 .units = std::llround(rank.units),
                                 .compute_ms = rank.compute_ms,
                                 .backward_ms = cluster.model.backward_fraction * rank.compute_ms /
                                                std::max(1.0, micro_batches)});
    }
    DeviceClass device;
    device.update_ms = rest_ms(run);
    layout.cluster.devices.push_back(device);
    return layout;
}

double step_ms_at(RunLayout& layout, double bandwidth_gb) {
    layout.cluster.network.intra.bandwidth_gb = bandwidth_gb;
    layout.cluster.network.inter.bandwidth_gb = bandwidth_gb;
    return simulate_update(layout.cluster, layout.groups).step_ms;
}

std::string fill_links(Cluster& cluster, const MeasuredRun& run) {
    if (run.is_pipelined)
        return "links: assumed to be free (" + run.name + " trained as pipelines)";
    if (run.ranks.size() < 2 || model_of(cluster, run).bytes == 0)
        return "links: assumed to be free (" + run.name + " has one rank, or no size of its model)";
    RunLayout layout = layout_of(cluster, run);
    double low = std::log(lowest_gb);
    double high = std::log(highest_gb);
    if (step_ms_at(layout, highest_gb) >= run.step_ms)
        return "links: assumed to be free (" + run.name + " hides its communication)";
    for (int i = 0; i < 50; ++i) {
        const double middle = (low + high) / 2;
        (step_ms_at(layout, std::exp(middle)) > run.step_ms ? low : high) = middle;
    }
    cluster.network.intra.bandwidth_gb = std::exp(high);
    cluster.network.inter.bandwidth_gb = std::exp(high);
    return "links: " + format_number(std::exp(high)) +
           " GB/s, with which the model reproduces the step time of " + run.name;
}

// Lines of times through runs of unlike models would say nothing.
void check_one_model(std::span<const MeasuredRun> runs) {
    const MeasuredRun& first = runs.front();
    const auto text = [](const MeasuredRun& run) {
        return format_number(run.model_bytes / 1e6, 4) + " MB";
    };
    const auto is_other = [&](const MeasuredRun& run) {
        constexpr double of_file = 0.01;  // what is beside the tensors
        return run.model_bytes > 0 && first.model_bytes > 0 &&
               std::abs(run.model_bytes - first.model_bytes) > of_file * first.model_bytes;
    };
    for (const MeasuredRun& run : runs)
        if (is_other(run))
            throw BadConfig(run.name + " trained another model than " + first.name,
                            "it has " + text(run) + ", not " + text(first),
                            "give runs of one model with --from");
}

}  // namespace

void take_cost(DeviceClass& device, const StepCost& cost, const std::string& source) {
    const std::int64_t micro_batch = std::min(device.cost.micro_batch, cost.micro_batch);
    const std::int64_t max_units = std::min(device.cost.max_units, cost.max_units);
    if (cost.micro_batch == 0 || !(cost.rate() <= most_rate && cost.time_ms(1) >= 1 / most_rate))
        throw BadData(source + " holds no cost of work",
                      "micro-batch " + std::to_string(cost.micro_batch) + ", " +
                          format_number(cost.rate()) + " units a millisecond",
                      "name another one for [device " + device.name + "]");
    if (!cost.table.empty() && micro_batch < cost.micro_batch)
        throw BadConfig(
            "[device " + device.name + "]: a micro-batch of " + std::to_string(micro_batch) +
                " units",
            source + " is a table of micro-batches up to " + std::to_string(cost.micro_batch),
            "measure with that micro-batch, or leave it out");
    const double described_mb = device.cost.activations_mb;
    device.cost = cost;
    if (described_mb > 0)
        device.cost.activations_mb = described_mb;
    device.cost.micro_batch = micro_batch;
    device.cost.max_units = max_units;
    device.has_times = true;
}

std::vector<std::string> fill_from_runs(Cluster& cluster, std::span<const MeasuredRun> runs) {
    std::vector<std::string> notes;
    const MeasuredRun& first = runs.front();
    check_one_model(runs);
    if (cluster.job.batch == 0 && cluster.job.units_per_rank == 0 && first.batch > 0) {
        cluster.job.batch = first.batch;
        notes.push_back("batch: " + std::to_string(first.batch) + " units, as in " + first.name);
    }
    const bool has_layers = !cluster.layers.empty();  // they say how large the model is, in fp32
    if (cluster.model.bytes == 0 && first.model_bytes > 0 && !has_layers) {
        cluster.model.bytes = first.model_bytes * first.sent_share;
        notes.push_back("model: " + format_number(cluster.model.bytes / 1e6) + " MB, as in " +
                        first.name);
    }
    if (!cluster.model.bucket_given && first.bucket_mib > 0)
        cluster.model.bucket_mib = first.bucket_mib * (has_layers ? 1 : first.sent_share);
    if (takes_chain(cluster, first))
        notes.push_back(fill_layers(cluster, first));
    // Times of layers are enough; those of stages are of no use.
    const bool only_layers = first.is_pipelined && !cluster.layers.empty();
    for (DeviceClass& device : cluster.devices)
        if (only_layers)
            device.measured.clear();  // it has been looked up
        else if (!device.has_times)
            notes.push_back(fill_device(device, runs));
    if (only_layers)
        for (const MeasuredRun& run : runs.subspan(1))
            notes.push_back(run.name + ": not used, since " + first.name +
                            " trained as pipelines and gives the layers' times");
    if (!cluster.network.given)
        notes.push_back(fill_links(cluster, first));
    return notes;
}

}  // namespace hetseq
