#include "hetseq/train/pipeline/link_costs.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include <ATen/ops/zeros.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"

namespace hetseq {

namespace {

constexpr int nobody = -1;
constexpr int small_messages = 8;
constexpr std::int64_t small_elements = 16;
constexpr std::int64_t first_elements = std::int64_t{1} << 15;  // 128 KiB
constexpr std::int64_t most_elements = std::int64_t{1} << 21;   // 8 MiB
// Between hosts, all rounds together. The longest message of a round takes some twice what is
// enough, and those before it as long together; all go there and back.
constexpr double all_rounds_ms = 3000;
constexpr double of_enough = 8;
constexpr double enough_ms = 40;  // of one message

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

// What the lower rank measures holds for both.
class LinkMeasurement {
public:
    LinkMeasurement(const HostComm& world, PeerChannel& channel, at::Device device)
        : channel_{channel},
          device_{device},
          rank_{world.rank()},
          ranks_{static_cast<std::size_t>(world.size())},
          numbers_(2 * ranks_ * ranks_, 0) {}

    // Both ranks call it. Messages grow until one takes `enough` [ms].
    void measure(int peer, double enough) {
        const bool begins = rank_ < peer;
        const LinkCost cost = cost_to(peer, begins, enough);
        if (!begins)
            return;
        for (const std::size_t at : {place(rank_, peer), place(peer, rank_)}) {
            numbers_[at] = cost.latency_ms;
            numbers_[at + 1] = cost.ms_per_mb;
        }
    }

    // So far, for a MiB that was sent or received [ms].
    double cpu_ms_per_mb() const { return moved_mb_ > 0 ? cpu_ms_ / moved_mb_ : 0; }

    // Collective. What all ranks have measured: [from][to].
    std::vector<std::vector<LinkCost>> gathered(const HostComm& world) {
        world.all_reduce(std::span<double>(numbers_), ReduceOp::sum);
        std::vector<std::vector<LinkCost>> links(ranks_);
        for (std::size_t at = 0; at < numbers_.size(); at += 2)
            links[at / 2 / ranks_].push_back({numbers_[at], numbers_[at + 1]});
        return links;
    }

private:
    std::size_t place(int from, int to) const {
        return 2 * (static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to));
    }
    at::Tensor message(std::int64_t elements) const {
        return at::zeros({elements}, at::TensorOptions(at::kFloat).device(device_));
    }

    double latency_ms(int peer, bool begins) {
        std::vector<double> trips;
        const at::Tensor small = message(small_elements);
        for (int i = 0; i < small_messages; ++i)
            trips.push_back(round_trip_ms(channel_, peer, begins, small));
        std::nth_element(trips.begin(), trips.begin() + small_messages / 2, trips.end());
        return trips[small_messages / 2] / 2;
    }

    // Some networks carry the first part of a message faster than their rate. What a large one
    // takes longer than the smallest shows the rate.
    LinkCost cost_to(int peer, bool begins, double enough) {
        LinkCost cost{.latency_ms = latency_ms(peer, begins)};
        double first_ms = 0, first_mb = 0;
        for (std::int64_t elements = first_elements; elements <= most_elements; elements *= 2) {
            const at::Tensor large = message(elements);
            const double mb = static_cast<double>(large.nbytes()) / bytes_of_mib;
            const double cpu_begin_s = process_cpu_seconds();
            const double ms = round_trip_ms(channel_, peer, begins, large) / 2;
            cost.ms_per_mb = std::max((ms - cost.latency_ms) / mb, 0.0);
            if (elements > first_elements)
                cost.ms_per_mb = std::max(cost.ms_per_mb, (ms - first_ms) / (mb - first_mb));
            if (elements == first_elements) {
                first_ms = ms;
                first_mb = mb;
            }
            const bool goes_on = is_told_to_go_on(peer, begins, ms < enough);
            cpu_ms_ += 1000 * (process_cpu_seconds() - cpu_begin_s);  // all has left by now
            moved_mb_ += 2 * mb;
            if (!goes_on)
                break;
        }
        return cost;
    }

    // Both must know whether there is another message.
    bool is_told_to_go_on(int peer, bool begins, bool own) {
        const at::Tensor goes_on = at::zeros({own ? 1 : 0});
        if (begins)
            channel_.start_send(peer, {goes_on});
        return (begins ? goes_on : channel_.receive(peer).front()).numel() > 0;
    }

    PeerChannel& channel_;
    at::Device device_;
    int rank_ = 0;
    std::size_t ranks_ = 0;
    std::vector<double> numbers_;  // by `place`: latency, then time for a MiB
    double cpu_ms_ = 0, moved_mb_ = 0;
};

// By host, in the order of their first ranks.
std::vector<std::vector<int>> ranks_by_host(const std::vector<std::string>& hosts) {
    std::map<std::string, std::size_t> known;
    std::vector<std::vector<int>> ranks;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        const auto [found, is_new] = known.emplace(hosts[rank], ranks.size());
        if (is_new)
            ranks.emplace_back();
        ranks[found->second].push_back(static_cast<int>(rank));
    }
    return ranks;
}

int rounds_of(std::size_t players) {
    return static_cast<int>(players + players % 2) - 1;
}

int place_of(const std::vector<int>& ranks, int rank) {
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? nobody : static_cast<int>(found - ranks.begin());
}

// Each two of `players` in turn; a rank that is none of them only keeps step.
void play(const HostComm& world,
          const std::vector<int>& players,
          int rounds,
          double enough,
          LinkMeasurement& measurement) {
    const int own = place_of(players, world.rank());
    for (int round = 0; round < rounds; ++round) {
        world.barrier();
        activity::progress();
        const int count = static_cast<int>(players.size());
        if (own == nobody || round >= rounds_of(players.size()))
            continue;
        if (const int other = opponent(own, count, round); other != nobody)
            measurement.measure(players[static_cast<std::size_t>(other)], enough);
    }
}

}  // namespace

// The circle method: the last rank stays, and the others go around it.
int opponent(int rank, int ranks, int round) {
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

MeasuredLinks measure_links(const HostComm& world,
                            PeerChannel& channel,
                            at::Device device,
                            const std::vector<std::string>& hosts) {
    HETSEQ_ASSERT(std::ssize(hosts) == world.size());
    const std::vector<std::vector<int>> by_host = ranks_by_host(hosts);
    std::vector<int> firsts;
    std::vector<std::size_t> host_of(hosts.size());
    std::size_t most_on_one = 0;
    for (std::size_t host = 0; host < by_host.size(); ++host) {
        firsts.push_back(by_host[host].front());
        most_on_one = std::max(most_on_one, by_host[host].size());
        for (const int rank : by_host[host])
            host_of[static_cast<std::size_t>(rank)] = host;
    }
    LinkMeasurement measurement{world, channel, device};
    const int rounds = rounds_of(firsts.size());
    const double of_round_ms = all_rounds_ms / std::max(rounds, 1);
    play(world, firsts, rounds, std::min(enough_ms, of_round_ms / of_enough), measurement);
    double cpu_ms_per_mb = measurement.cpu_ms_per_mb();
    const auto& own_host = by_host[host_of[static_cast<std::size_t>(world.rank())]];
    play(world, own_host, rounds_of(most_on_one), enough_ms, measurement);

    if (firsts.size() == 1)
        cpu_ms_per_mb = measurement.cpu_ms_per_mb();
    std::vector<double> cpu_ms = world.all_gather(cpu_ms_per_mb);
    if (firsts.size() > 1)
        for (std::size_t rank = 0; rank < cpu_ms.size(); ++rank)
            cpu_ms[rank] = cpu_ms[static_cast<std::size_t>(firsts[host_of[rank]])];

    auto links = measurement.gathered(world);
    for (std::size_t from = 0; from < links.size(); ++from)
        for (std::size_t to = 0; to < links.size(); ++to)
            if (host_of[from] != host_of[to])
                links[from][to] = links[static_cast<std::size_t>(firsts[host_of[from]])]
                                       [static_cast<std::size_t>(firsts[host_of[to]])];
    return {std::move(links), std::move(cpu_ms)};
}

}  // namespace hetseq
