#include "hetseq/train/pipeline/link_costs.hpp"

#include <algorithm>
#include <cstdint>

#include <ATen/ops/zeros.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"

namespace hetseq {

namespace {

constexpr int small_messages = 8;
constexpr std::int64_t small_elements = 16;
constexpr std::int64_t first_elements = std::int64_t{1} << 15;  // 128 KiB
constexpr std::int64_t most_elements = std::int64_t{1} << 21;   // 8 MiB
constexpr double enough_ms = 40;                                // of one message

// There and back [ms]; both ranks call it. The lower one begins.
double round_trip_ms(PeerChannel& channel, int peer, bool begins, const at::Tensor& tensor) {
    const double begin = monotonic_seconds();
    if (begins)
        channel.start_send(peer, {tensor});
    static_cast<void>(channel.receive(peer));
    if (!begins)
        channel.start_send(peer, {tensor});
    return 1000 * (monotonic_seconds() - begin);
}

// Of messages to one peer. What the lower rank measures holds for both.
LinkCost measured(PeerChannel& channel, int peer, bool begins, at::Device device) {
    const auto message = [&](std::int64_t elements) {
        return at::zeros({elements}, at::TensorOptions(at::kFloat).device(device));
    };
    std::vector<double> trips;
    const at::Tensor small = message(small_elements);
    for (int i = 0; i < small_messages; ++i)
        trips.push_back(round_trip_ms(channel, peer, begins, small));
    std::nth_element(trips.begin(), trips.begin() + small_messages / 2, trips.end());
    LinkCost cost{.latency_ms = trips[small_messages / 2] / 2};
    for (std::int64_t elements = first_elements; elements <= most_elements; elements *= 4) {
        const at::Tensor large = message(elements);
        const double ms = round_trip_ms(channel, peer, begins, large) / 2;
        cost.ms_per_mb = std::max(ms - cost.latency_ms, 0.0) /
                         (static_cast<double>(large.nbytes()) / bytes_of_mib);
        // Both must know whether there is another.
        const at::Tensor goes_on = at::zeros({ms < enough_ms ? 1 : 0});
        if (begins)
            channel.start_send(peer, {goes_on});
        if ((begins ? goes_on : channel.receive(peer).front()).numel() == 0)
            break;
    }
    return cost;
}

}  // namespace

// The circle method: the last rank stays, and the others go around it.
int opponent(int rank, int ranks, int round) {
    constexpr int nobody = -1;
    const int even = ranks + ranks % 2;
    const int around = even - 1;
    int other = 0;
    if (rank == around)
        other = round % 2 == 0 ? round / 2 : (round + even) / 2 % around;
    else
        other = ((round - rank) % around + around) % around;
    if (other == rank)
        other = around;
    return other < ranks ? other : nobody;
}

std::vector<std::vector<LinkCost>> measure_links(const HostComm& world,
                                                 PeerChannel& channel,
                                                 at::Device device) {
    const auto ranks = static_cast<std::size_t>(world.size());
    std::vector<double> sums(2 * ranks * ranks, 0);
    const int rounds = world.size() + world.size() % 2 - 1;
    for (int round = 0; round < rounds; ++round) {
        world.barrier();
        activity::progress();
        const int peer = opponent(world.rank(), world.size(), round);
        if (peer < 0)
            continue;
        const bool begins = world.rank() < peer;
        const LinkCost cost = measured(channel, peer, begins, device);
        if (!begins)
            continue;
        const auto own = static_cast<std::size_t>(world.rank());
        const auto other = static_cast<std::size_t>(peer);
        for (const std::size_t at : {own * ranks + other, other * ranks + own}) {
            sums[2 * at] = cost.latency_ms;
            sums[2 * at + 1] = cost.ms_per_mb;
        }
    }
    world.all_reduce(std::span<double>(sums), ReduceOp::sum);
    std::vector<std::vector<LinkCost>> links(ranks, std::vector<LinkCost>(ranks));
    for (std::size_t at = 0; at < ranks * ranks; ++at)
        links[at / ranks][at % ranks] = {sums[2 * at], sums[2 * at + 1]};
    return links;
}

}  // namespace hetseq
