#include "divisions.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "hetseq/util/quantity.hpp"

#include "compute_times.hpp"

namespace hetseq {

namespace {

using Ranks = std::vector<int>;

constexpr std::size_t all_up_to = 8;

constexpr double apart = 1.41421356237;
constexpr double far_apart = 2;

// From `first` to `last`: all small numbers, and larger ones by a factor.
std::set<std::size_t> sampled(std::size_t first, std::size_t last, double factor = apart) {
    std::set<std::size_t> numbers;
    for (std::size_t n = first; n <= std::min(last, all_up_to); ++n)
        numbers.insert(n);
    for (double n = all_up_to; n <= static_cast<double>(last); n *= factor)
        if (const auto near = static_cast<std::size_t>(std::lround(n)); near >= first)
            numbers.insert(std::min(near, last));
    return numbers;
}

std::vector<Ranks> each_alone(const Ranks& ranks) {
    std::vector<Ranks> workers;
    for (const int rank : ranks)
        workers.push_back({rank});
    return workers;
}

class Candidates {
public:
    explicit Candidates(LayoutPlanner& planner) : planner_{planner}, problem_{planner.problem()} {
        for (std::size_t rank = 0; rank < problem_.ranks(); ++rank) {
            all_.push_back(static_cast<int>(rank));
            (planner.holds_model(all_.back()) ? holders_ : others_).push_back(all_.back());
        }
    }

    std::vector<Division> run() {
        add_data_parallelism();
        add_sharded();
        add("one worker of all " + count(all_), {all_});
        add_hosts();
        for (const std::size_t n : numbers_of_workers(all_, apart))
            add(std::to_string(n) + " workers, over which each kind of ranks is dealt",
                dealt(all_, n));
        if (!holders_.empty() && !others_.empty())
            add_beside_holders();
        return std::move(divisions_);
    }

private:
    static std::string count(const Ranks& ranks) { return count_text(std::ssize(ranks), "rank"); }

    // Whatever the order of workers, they are the same.
    void add(const std::string& name,
             std::vector<Ranks> workers,
             WorkerState state = WorkerState::whole) {
        std::vector<Ranks> sorted = workers;
        for (Ranks& ranks : sorted)
            std::sort(ranks.begin(), ranks.end());
        std::sort(sorted.begin(), sorted.end());
        if (seen_.emplace(state == WorkerState::sharded, std::move(sorted)).second)
            divisions_.push_back({name, std::move(workers), state});
    }

    void add_data_parallelism() {
        add("data parallelism on all " + count(all_), each_alone(all_));
        if (holders_.empty())
            return;
        add("data parallelism on the " + count(holders_) + " that hold the model",
            each_alone(holders_));
        add_fastest(groups_of(holders_, [&](int rank) { return chain_ms(problem_, rank); }),
                    ", without the slowest kinds");
        const auto hosts = hosts_of(holders_);
        add_fastest(hosts, ", without the slowest hosts");
        const int fastest = *std::min_element(holders_.begin(), holders_.end(), [&](int a, int b) {
            return chain_ms(problem_, a) < chain_ms(problem_, b);
        });
        add("rank " + std::to_string(fastest) + " alone", {{fastest}});
    }

    // The groups with the fastest ranks first, then with most speed together.
    void add_fastest(std::vector<Ranks> groups, const std::string& which) {
        const auto slowness = [&](const Ranks& ranks) {
            double speed = 0;
            for (const int rank : ranks)
                speed += 1 / chain_ms(problem_, rank);
            return std::pair(static_cast<double>(ranks.size()) / speed, -speed);
        };
        std::stable_sort(groups.begin(), groups.end(), [&](const Ranks& a, const Ranks& b) {
            return slowness(a) < slowness(b);
        });
        Ranks ranks;
        const std::set<std::size_t> numbers = sampled(1, groups.size() - 1);
        for (std::size_t n = 1; n < groups.size(); ++n) {
            ranks.insert(ranks.end(), groups[n - 1].begin(), groups[n - 1].end());
            if (numbers.contains(n))
                add("data parallelism on " + count(ranks) + which, each_alone(ranks));
        }
    }

    // Each rank's part grows as others are left out.
    void add_sharded() {
        if (!problem_.sharded_state_mb)
            return;
        Ranks ranks = all_;
        std::size_t before = 0;
        while (ranks.size() > 1 && ranks.size() != before) {
            before = ranks.size();
            std::erase_if(ranks, [&](int rank) { return !planner_.holds_model(rank, before); });
        }
        if (ranks.size() > holders_.size() && ranks.size() > 1)
            add("data parallelism on " + count(ranks) + ", each with a part of the state",
                each_alone(ranks),
                WorkerState::sharded);
    }

    // Some hosts together hold what one does not.
    void add_hosts() {
        const std::vector<Ranks> hosts = hosts_of(all_);
        add("one worker of each host", hosts);
        for (std::size_t together = 2; 2 * together <= hosts.size() && together <= all_up_to;
             together *= 2) {
            std::vector<Ranks> workers((hosts.size() + together - 1) / together);
            for (std::size_t h = 0; h < hosts.size(); ++h)
                workers[h / together].insert(
                    workers[h / together].end(), hosts[h].begin(), hosts[h].end());
            add("one worker of each " + std::to_string(together) + " hosts", std::move(workers));
        }
    }

    void add_beside_holders() {
        const auto beside = [&](const std::string& what, const std::vector<Ranks>& workers) {
            std::vector<Ranks> together = each_alone(holders_);
            together.insert(together.end(), workers.begin(), workers.end());
            add(count(holders_) + " alone beside " + what, std::move(together));
        };
        beside("one worker of the other " + std::to_string(others_.size()), {others_});
        beside("one worker of each other host", hosts_of(others_));
        for (const std::size_t n : numbers_of_workers(others_, far_apart))
            beside(std::to_string(n) + " workers of the others", dealt(others_, n));
    }

    template <class Key>
    static std::vector<Ranks> groups_of(const Ranks& ranks, const Key& key) {
        std::map<decltype(key(0)), Ranks> groups;
        for (const int rank : ranks)
            groups[key(rank)].push_back(rank);
        std::vector<Ranks> in_order;
        for (auto& [of, own] : groups)
            in_order.push_back(std::move(own));
        return in_order;
    }

    std::vector<Ranks> hosts_of(const Ranks& ranks) const {
        return groups_of(ranks, [&](int rank) { return host_of(rank); });
    }
    std::vector<Ranks> classes_of(const Ranks& ranks) const {
        return groups_of(
            ranks, [&](int rank) { return problem_.class_of[static_cast<std::size_t>(rank)]; });
    }
    int host_of(int rank) const { return problem_.host_of[static_cast<std::size_t>(rank)]; }

    // Those that deal all classes without a rest are among them.
    std::set<std::size_t> numbers_of_workers(const Ranks& ranks, double factor) const {
        std::set<std::size_t> numbers = sampled(2, ranks.size() / 2, factor);
        std::size_t divisor = 0;
        for (const Ranks& like : classes_of(ranks))
            divisor = std::gcd(divisor, like.size());
        for (std::size_t n = 2; n <= std::min(divisor, ranks.size() / 2); ++n)
            if (divisor % n == 0)
                numbers.insert(n);
        return numbers;
    }

    // Ranks of a host go to different workers, one after the other; the next class goes on where
    // the one before ended, so that workers have equally many.
    std::vector<Ranks> dealt(const Ranks& ranks, std::size_t workers) const {
        std::vector<Ranks> hands(workers);
        std::size_t next = 0;
        for (Ranks& like : classes_of(ranks)) {
            std::stable_sort(
                like.begin(), like.end(), [&](int a, int b) { return host_of(a) < host_of(b); });
            for (const int rank : like)
                hands[next++ % workers].push_back(rank);
        }
        return hands;
    }

    LayoutPlanner& planner_;
    const LayoutProblem& problem_;
    Ranks all_, holders_, others_;
    std::vector<Division> divisions_;
    std::set<std::pair<bool, std::vector<Ranks>>> seen_;
};

}  // namespace

std::vector<Division> candidate_divisions(LayoutPlanner& planner) {
    return Candidates{planner}.run();
}

}  // namespace hetseq
