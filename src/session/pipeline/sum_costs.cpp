#include "sum_costs.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include <ATen/ops/zeros.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/plan/all_reduce_time.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t small_elements = std::int64_t{1} << 18;  // 1 MiB
constexpr std::int64_t large_elements = std::int64_t{1} << 21;  // 8 MiB, as buckets are
constexpr double soon_ms = 50;

Link as_link(const LinkCost& cost) {
    constexpr double bytes_a_ms_in_gb_a_s = 1e-6;
    return {.latency_us = 1000 * cost.latency_ms,
            .bandwidth_gb = bytes_of_mib / std::max(cost.ms_per_mb, 1e-9) * bytes_a_ms_in_gb_a_s};
}

// Between hosts, or within them; a free one where there is none.
LinkCost slowest(const RunSettings& settings,
                 const std::vector<std::vector<LinkCost>>& links,
                 std::span<const int> ranks,
                 bool within) {
    LinkCost slowest;
    for (const int a : ranks)
        for (const int b : ranks) {
            const bool same_host = settings.topology.rank(a).host == settings.topology.rank(b).host;
            if (a == b || same_host != within)
                continue;
            const LinkCost& cost = links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
            slowest.latency_ms = std::max(slowest.latency_ms, cost.latency_ms);
            slowest.ms_per_mb = std::max(slowest.ms_per_mb, cost.ms_per_mb);
        }
    return slowest;
}

double timed_sum_ms(Communicator& communicator, std::int64_t elements) {
    const at::Tensor gradients =
        at::zeros({elements}, at::TensorOptions(at::kFloat).device(communicator.device()));
    communicator.all_reduce_sum(gradients.narrow(0, 0, 1));  // the ranks begin together
    const double begin = monotonic_seconds();
    communicator.all_reduce_sum(gradients);
    gradients[0].item();  // a GPU is behind its host
    activity::progress();
    return 1000 * (monotonic_seconds() - begin);
}

}  // namespace

double sum_ms_by_links(const RunSettings& settings,
                       const std::vector<std::vector<LinkCost>>& links,
                       std::span<const int> ranks,
                       double mb) {
    if (ranks.size() < 2)
        return 0;
    std::map<std::string, std::int64_t> on_host;
    for (const int rank : ranks)
        ++on_host[settings.topology.rank(rank).host];
    Route route{.ranks = std::ssize(ranks),
                .nodes = std::ssize(on_host),
                .intra = as_link(slowest(settings, links, ranks, true)),
                .inter = as_link(slowest(settings, links, ranks, false))};
    for (const auto& [host, count] : on_host)
        route.gpus = std::max(route.gpus, count);
    const bool on_hosts = settings.device.is_cpu();
    return all_reduce_ms(
        on_hosts ? AllReduceAlgorithm::mpi : AllReduceAlgorithm::ring, route, mb * bytes_of_mib);
}

// By one of the size of a bucket, where that does not take long.
double measured_sum_factor(const MpiEnvironment& environment,
                           const HostComm& world,
                           const RunSettings& settings,
                           const std::vector<std::vector<LinkCost>>& links) {
    if (world.size() < 2)
        return 1;
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    const auto communicator = make_communicator(world, environment, settings.device);
    const auto factor_of = [&](std::int64_t elements, double& ms) {
        ms = world.all_reduce(timed_sum_ms(*communicator, elements), ReduceOp::max);
        const double mb =
            static_cast<double>(elements * std::int64_t{sizeof(float)}) / bytes_of_mib;
        return ms / std::max(sum_ms_by_links(settings, links, all, mb), 1e-6);
    };
    double ms = 0;
    factor_of(small_elements, ms);  // new memory is slow
    double factor = factor_of(small_elements, ms);
    if (ms < soon_ms) {
        factor_of(large_elements, ms);
        factor = factor_of(large_elements, ms);
    }
    return world.all_gather(factor).front();
}

}  // namespace hetseq
