#include "aligned_stages.hpp"

#include <algorithm>
#include <numeric>

#include "compute_times.hpp"

namespace hetseq {

namespace {

std::size_t class_of(const LayoutProblem& problem, int rank) {
    return problem.class_of[static_cast<std::size_t>(rank)];
}

}  // namespace

std::vector<std::size_t> ends_of(std::span<const ChainStage> stages) {
    std::vector<std::size_t> ends;
    for (const ChainStage& stage : stages)
        ends.push_back(stage.end);
    return ends;
}

std::vector<ChainStage> aligned_stages(const LayoutProblem& problem,
                                       std::size_t size,
                                       std::span<const std::size_t> ends,
                                       std::vector<int> ranks) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
        return chain_ms(problem, a) < chain_ms(problem, b);
    });
    const std::size_t fastest = class_of(problem, ranks.front());
    std::vector<ChainStage> stages;
    std::vector<double> ms;
    for (const std::size_t end : ends) {
        stages.push_back({fastest, stages.empty() ? 0 : stages.back().end, end});
        ms.push_back(stage_ms(problem, size, stages.back()));
    }
    std::vector<std::size_t> longest(ends.size());
    std::iota(longest.begin(), longest.end(), std::size_t{0});
    std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) {
        return ms[a] > ms[b];
    });
    for (std::size_t i = 0; i < longest.size(); ++i)
        stages[longest[i]].device_class = class_of(problem, ranks[i]);
    return stages;
}

}  // namespace hetseq
