#include "hetseq/plan/cluster_memory.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/balance/usable_memory.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t value_bytes = 4;

std::int64_t parameters_of(const ModelSize& model) {
    return model.parameters > 0 ? model.parameters
                                : std::llround(model.bytes / static_cast<double>(value_bytes));
}

// Without any of the state.
RankMemory memory_without_state(const DeviceClass& device) {
    return {.has_mb = device.memory_mib,
            .process_mb = device.process_mib,
            .activations_mb = device.cost.activations_mb};
}

// What a rank on these nodes takes of the state, beside those of other nodes.
double weight_of(const Cluster& cluster, const ModelMemory& model, const NodeClass& node) {
    const DeviceClass& device = cluster.devices[node.device];
    if (cluster.job.state != StateParts::by_memory)
        return 1;
    if (device.memory_mib == 0)
        return 0;
    const RankMemory memory = memory_without_state(device);
    return std::max(0.0, usable_memory * memory.has_mb - sum_of(memory_terms(model, memory)));
}

}  // namespace

std::vector<NodeClassMemory> plan_memory(const Cluster& cluster) {
    const ModelMemory model{.elements = parameters_of(cluster.model),
                            .element_bytes = value_bytes,
                            .state_tensors = cluster.model.state_tensors};
    std::vector<NodeClassMemory> memory;
    if (model.elements == 0)
        return memory;
    double all = 0;
    for (const NodeClass& node : cluster.nodes)
        all += weight_of(cluster, model, node) * static_cast<double>(node.gpus * node.count);
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
        const NodeClass& node = cluster.nodes[i];
        const DeviceClass& device = cluster.devices[node.device];
        if (device.memory_mib == 0)
            continue;
        RankMemory own = memory_without_state(device);
        const bool is_whole = cluster.job.state == StateParts::whole;
        const double part = is_whole ? 1 : all > 0 ? weight_of(cluster, model, node) / all : 0;
        own.state_elements = std::llround(part * static_cast<double>(model.elements));
        memory.push_back({i, memory_terms(model, own), own.has_mb});
    }
    return memory;
}

}  // namespace hetseq
