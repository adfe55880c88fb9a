#include "cut_times.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "stage_costs.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_simulated = 64;  // micro-batches, and for long pipelines:
constexpr std::size_t most_per_stage = 4;
constexpr std::size_t most_searched = 1024;
constexpr std::size_t few = 32;

std::int64_t ceil_div(std::int64_t units, std::int64_t by) {
    return (units + by - 1) / by;
}

// One micro-batch of each size up to `size`, and of nothing: on the line through the first two.
std::vector<CostPoint> within_micro_batch(const LayoutProblem& problem,
                                          const StateTable& state,
                                          std::size_t size,
                                          const WorkerKind& kind,
                                          std::span<const ChainStage> stages) {
    std::vector<CostPoint> points;
    for (std::size_t i = problem.sizes.size(); i-- > size;) {
        const CutCosts costs = stage_costs(problem, state, i, kind, stages);
        points.push_back({problem.sizes[i].micro_batch, fastest_in_flight(costs, 1).predicted_ms});
    }
    if (points.size() > 1) {
        const CostPoint &less = points[0], &more = points[1];
        const double slope = (more.ms - less.ms) / static_cast<double>(more.units - less.units);
        const double start_ms = less.ms - slope * static_cast<double>(less.units);
        points.insert(points.begin(), {0, std::clamp(start_ms, 0.0, less.ms)});
    }
    return points;
}

// 2, 3, 4, 6, 8, 12 and so on, until times grow evenly.
std::vector<std::size_t> simulated_numbers(std::size_t most, std::size_t stages) {
    const std::size_t last = std::min(most, std::max(most_simulated, most_per_stage * stages));
    std::vector<std::size_t> numbers;
    for (std::size_t power = 2; power < last; power *= 2)
        for (const std::size_t number : {power, power + power / 2})
            if (number < last && (numbers.empty() || number > numbers.back()))
                numbers.push_back(number);
    if (last > 1)
        numbers.push_back(last);
    return numbers;
}

// What each further micro-batch takes once a pipeline is full [ms]. Between two numbers that are
// simulated with unlike micro-batches in flight, times may fall; the period is the least.
double even_ms(const CutCosts& costs, std::size_t number, const PipelineCut& cut) {
    const std::size_t half = number / 2;
    const double half_ms = evaluate(costs, half, cut.extra_in_flight).predicted_ms;
    return std::max(cut.period_ms,
                    (cut.predicted_ms - half_ms) / static_cast<double>(number - half));
}

// A pipeline goes on where the micro-batch before ended: its times do not repeat.
void add_micro_batches(const CutCosts& costs,
                       std::int64_t micro_batch,
                       std::size_t most,
                       std::vector<CostPoint>& points) {
    const std::size_t first = points.size();
    const std::vector<std::size_t> numbers = simulated_numbers(most, costs.stages.size());
    PipelineCut cut;
    for (const std::size_t number : numbers) {
        cut = fastest_in_flight(costs, number);
        points.push_back({static_cast<std::int64_t>(number) * micro_batch, cut.predicted_ms});
    }
    if (const std::size_t last = numbers.back(); last < most)
        points.push_back(
            {static_cast<std::int64_t>(most) * micro_batch,
             cut.predicted_ms + even_ms(costs, last, cut) * static_cast<double>(most - last)});
    // Fewer micro-batches take no longer than more of them do.
    for (std::size_t i = points.size() - 1; i-- > first;)
        points[i].ms = std::min(points[i].ms, points[i + 1].ms);
}

}  // namespace

std::size_t rounded_micro_batches(std::int64_t units, std::int64_t micro_batch) {
    const auto exact =
        static_cast<std::size_t>(ceil_div(std::max<std::int64_t>(1, units), micro_batch));
    std::size_t number = std::min(exact, most_searched), dropped = 0;
    if (number <= few)
        return number;
    for (; number >= 8; number /= 2)
        ++dropped;
    return number << dropped;
}

StepCost cut_times(const LayoutProblem& problem,
                   const StateTable& state,
                   std::size_t size,
                   const WorkerKind& kind,
                   std::span<const ChainStage> stages) {
    const std::int64_t micro_batch = problem.sizes[size].micro_batch;
    std::vector<CostPoint> points = within_micro_batch(problem, state, size, kind, stages);
    if (stages.size() > 1) {
        const CutCosts costs = stage_costs(problem, state, size, kind, stages);
        const std::int64_t most = std::max<std::int64_t>(2, ceil_div(problem.batch, micro_batch));
        add_micro_batches(costs, micro_batch, static_cast<std::size_t>(most), points);
    }
    StepCost cost{.micro_batch = micro_batch};
    cost.table = StepTable(std::move(points));
    return cost;
}

}  // namespace hetseq
