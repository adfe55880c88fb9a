// usage: bench_speed_tracker [RANKS [UPDATES [MS]]]
// Prints the CPU time that the tracker takes in updates of MS milliseconds of RANKS ranks: what an
// update waits for, and what another thread does while the update is computed. Every 200 updates an
// epoch ends with a batch that leaves half of the ranks without work.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "hetseq/balance/allocate.hpp"
#include "hetseq/balance/speed_tracker.hpp"

#include <time.h>

namespace hetseq {
namespace {

constexpr std::int64_t units_of_a_rank = 32;
constexpr int updates_of_an_epoch = 200;

struct Times {
    std::vector<double> ms;  // of each update

    void print(const char* name, double update_ms) {
        std::sort(ms.begin(), ms.end());
        double sum = 0;
        for (const double time : ms)
            sum += time;
        const double mean = sum / static_cast<double>(ms.size());
        std::printf("%-12s mean %.4f ms (%.4f %% of an update), p99 %.4f ms, longest %.4f ms\n",
                    name,
                    mean,
                    100 * mean / update_ms,
                    ms[ms.size() * 99 / 100],
                    ms.back());
    }
};

double cpu_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

template <class Function>
double timed_ms(Function&& function) {
    const double begin = cpu_ms();
    function();
    return cpu_ms() - begin;
}

void run(std::size_t ranks, int updates, double update_ms) {
    std::mt19937 random(1);
    std::normal_distribution<double> noise(1, 0.02);
    const std::vector<StepCost> costs(
        ranks, {.start_ms = 2, .unit_ms = update_ms / units_of_a_rank, .micro_batch = 16});
    SpeedTracker tracker(costs, {.kinds = std::vector<int>(ranks, 0)});
    std::vector<std::int64_t> allocation =
        allocate(costs, units_of_a_rank * static_cast<std::int64_t>(ranks));
    std::vector<std::int64_t> last = allocation;
    std::fill(last.begin() + std::ptrdiff_t(ranks / 2), last.end(), 0);
    Times waited, beside;
    for (int update = 0; update < updates; ++update) {
        const bool ends_epoch = update % updates_of_an_epoch == updates_of_an_epoch - 1;
        const std::vector<std::int64_t>& cut = ends_epoch ? last : allocation;
        std::vector<double> compute_ms(ranks), own_ms(ranks, 1);
        for (std::size_t r = 0; r < ranks; ++r)
            compute_ms[r] = cut[r] > 0 ? costs[r].time_ms(cut[r]) * noise(random) : 0;
        bool is_slow = false, is_quiet = false;
        const auto observe = [&] { tracker.observe(compute_ms, cut, own_ms); };
        double waited_ms = timed_ms([&] { is_slow = tracker.observes_slowly(cut); });
        double beside_ms = 0;
        (is_slow ? beside_ms : waited_ms) += timed_ms(observe);
        if (!is_slow)
            waited_ms += timed_ms([&] { is_quiet = tracker.is_quiet(allocation); });
        if (!is_quiet)
            beside_ms += timed_ms([&] {
                if (auto better = tracker.propose(allocation))
                    allocation = std::move(*better);
            });
        waited.ms.push_back(waited_ms);
        beside.ms.push_back(beside_ms);
    }
    std::printf("%zu ranks, %d updates of %g ms\n", ranks, updates, update_ms);
    waited.print("waited for", update_ms);
    beside.print("beside", update_ms);
}

}  // namespace
}  // namespace hetseq

int main(int argc, char** argv) {
    const auto argument = [&](int index, double otherwise) {
        return argc > index ? std::strtod(argv[index], nullptr) : otherwise;
    };
    hetseq::run(static_cast<std::size_t>(argument(1, 1024)),
                static_cast<int>(argument(2, 1000)),
                argument(3, 200));
}
