#include "hetseq/plan/layout/layer_times.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/balance/usable_memory.hpp"

namespace hetseq {

namespace {

// Operations in 10^9 over 10^12 a second are milliseconds.
double unit_ms(const Cluster& cluster, const LayerClass& layer, const DeviceClass& device) {
    if (const auto measured = device.layer_ms.find(layer.name); measured != device.layer_ms.end())
        return measured->second;
    return layer.gflop / device.tflops / (1 - cluster.model.backward_fraction);
}

void require_times(const Cluster& cluster, const DeviceClass& device) {
    if (device.tflops > 0)
        return;
    for (const LayerClass& layer : cluster.layers)
        if (!device.layer_ms.contains(layer.name))
            throw BadConfig(
                "the device '" + device.name + "' has no time of the layer '" + layer.name + "'",
                "neither 'tflops' nor 'layer-ms' of it in [device " + device.name + "]",
                "give one");
}

// The largest with which the memory holds the whole model; the smallest, where none is.
std::int64_t micro_batch_of(const Cluster& cluster, const DeviceClass& device, double unit_mib) {
    const std::vector<std::int64_t>& sizes = cluster.job.micro_batches;
    if (device.memory_mib == 0)
        return sizes.front();
    const double tensors = 2 + static_cast<double>(cluster.model.state_tensors);
    const double left_mib =
        usable_memory * device.memory_mib - device.process_mib -
        tensors * bytes_of_fp32 * static_cast<double>(cluster.model.parameters) / bytes_of_mib;
    const auto fitting = std::find_if(sizes.begin(), sizes.end(), [&](std::int64_t units) {
        return static_cast<double>(units) * unit_mib <= left_mib;
    });
    return fitting == sizes.end() ? sizes.back() : *fitting;
}

void fill_device(const Cluster& cluster, DeviceClass& device) {
    double layers = 0, unit = 0, kept_mib = 0, workspace_mib = 0;
    for (const LayerClass& layer : cluster.layers) {
        const auto count = static_cast<double>(layer.count);
        layers += count;
        unit += count * unit_ms(cluster, layer, device);
        kept_mib += count * layer.kept_mib;
        workspace_mib = std::max(workspace_mib, layer.workspace_mib);
    }
    device.cost.micro_batch_ms = layers * device.launch_ms;
    device.cost.unit_ms = unit;
    device.cost.micro_batch = std::min(device.cost.micro_batch,
                                       micro_batch_of(cluster, device, kept_mib + workspace_mib));
    if (device.cost.activations_mb == 0)
        device.cost.activations_mb =
            static_cast<double>(device.cost.micro_batch) * (kept_mib + workspace_mib);
    device.has_times = true;
}

}  // namespace

double layer_ms(const Cluster& cluster,
                const LayerClass& layer,
                const DeviceClass& device,
                std::int64_t units) {
    return device.launch_ms + static_cast<double>(units) * unit_ms(cluster, layer, device);
}

void fill_from_layers(Cluster& cluster) {
    if (cluster.layers.empty())
        return;
    const double parameters = cluster.layers_parameters();
    cluster.model.parameters = std::llround(parameters);
    if (cluster.model.bytes == 0)
        cluster.model.bytes = bytes_of_fp32 * parameters;
    for (const NodeClass& node : cluster.nodes) {
        DeviceClass& device = cluster.devices[node.device];
        require_times(cluster, device);
        const bool has_own = device.has_times || !device.costs.empty() || !device.measured.empty();
        if (!has_own)
            fill_device(cluster, device);
    }
}

}  // namespace hetseq
