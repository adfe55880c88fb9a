#include "hetseq/plan/cluster.hpp"

#include <algorithm>

namespace hetseq {

Link slower(const Link& a, const Link& b) {
    return {std::max(a.latency_us, b.latency_us), std::min(a.bandwidth_gb, b.bandwidth_gb)};
}

double Cluster::layers_parameters() const {
    double parameters = 0;
    for (const LayerClass& layer : layers)
        parameters += static_cast<double>(layer.count) * layer.parameters;
    for (const TiedLayers& one : tied)
        parameters -= static_cast<double>(one.layers.size() - 1) * one.parameters;
    return std::max(parameters, 0.0);
}

std::int64_t Cluster::ranks() const {
    std::int64_t total = 0;
    for (const NodeClass& node : nodes)
        total += node.gpus * node.count;
    return total;
}

std::int64_t Cluster::batch() const {
    return job.batch > 0 ? job.batch : job.units_per_rank * ranks();
}

}  // namespace hetseq
