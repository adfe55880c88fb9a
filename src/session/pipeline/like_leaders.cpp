#include "hetseq/session/pipeline/like_leaders.hpp"

#include <numeric>

#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

bool are_alike(const WorkerLayout& a, const WorkerLayout& b, const std::vector<int>& like) {
    if (a.ranks.size() != b.ranks.size() || a.micro_batch != b.micro_batch ||
        a.extra_in_flight != b.extra_in_flight)
        return false;
    for (std::size_t s = 0; s < a.ranks.size(); ++s) {
        const auto number = [&](const WorkerLayout& worker) {
            return like[static_cast<std::size_t>(worker.ranks[s])];
        };
        if (number(a) != number(b) || a.cut.units[s].begin != b.cut.units[s].begin ||
            a.cut.units[s].end != b.cut.units[s].end)
            return false;
    }
    return true;
}

}  // namespace

std::vector<int> like_leaders(const RunSettings& settings, const Replica& replica) {
    const std::vector<int> like = like_ranks(settings);
    if (replica.stage() == nullptr)
        return like;
    std::vector<int> numbers(like.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    const std::vector<WorkerLayout>& workers = replica.stage()->layout().workers;
    for (std::size_t w = 1; w < workers.size(); ++w)
        for (std::size_t other = 0; other < w; ++other)
            if (are_alike(workers[other], workers[w], like)) {
                numbers[static_cast<std::size_t>(workers[w].ranks.front())] =
                    numbers[static_cast<std::size_t>(workers[other].ranks.front())];
                break;
            }
    return numbers;
}

}  // namespace hetseq
