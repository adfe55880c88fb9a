#include "worker_kind.hpp"

#include <algorithm>

namespace hetseq {

namespace {

constexpr std::size_t few_ranks = 64;
constexpr double like_links = 1.5;

bool are_like(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double one, double other) {
        return one <= like_links * other && other <= like_links * one;
    });
}

// Links are the mean over the ranks' pairs.
WorkerKind own_kind(const LayoutProblem& problem, std::span<const int> ranks) {
    const std::size_t classes = problem.sizes.front().chain.devices.size();
    const auto class_of = [&](int rank) {
        return problem.class_of[static_cast<std::size_t>(rank)];
    };
    WorkerKind kind{std::vector<std::size_t>(classes, 0), {}, {}};
    for (const int rank : ranks)
        ++kind.devices[class_of(rank)];
    if (!problem.link)
        return kind;
    kind.latency_ms.assign(classes * classes, 0);
    kind.ms_per_mb.assign(classes * classes, 0);
    std::vector<double> pairs(classes * classes, 0);
    for (const int from : ranks)
        for (const int to : ranks)
            if (from != to) {
                const ChainLink link = problem.link(from, to);
                const std::size_t at = class_of(from) * classes + class_of(to);
                kind.latency_ms[at] += link.latency_ms;
                kind.ms_per_mb[at] += link.ms_per_mb;
                ++pairs[at];
            }
    for (std::size_t at = 0; at < pairs.size(); ++at)
        for (double* const sum : {&kind.latency_ms[at], &kind.ms_per_mb[at]})
            if (pairs[at] > 0)
                *sum = *sum / pairs[at];
    return kind;
}

}  // namespace

ChainLink WorkerKind::link(const ChainProblem& chain, std::size_t from, std::size_t to) const {
    const std::size_t at = from * devices.size() + to;
    return latency_ms.empty() ? chain.links[from][to] : ChainLink{latency_ms[at], ms_per_mb[at]};
}

WorkerKind WorkerKinds::of(std::span<const int> ranks) {
    WorkerKind own = own_kind(problem_, ranks);
    if (problem_.ranks() <= few_ranks)
        return own;
    std::vector<WorkerKind>& known = known_[own.devices];
    for (const WorkerKind& kind : known)
        if (are_like(kind.latency_ms, own.latency_ms) && are_like(kind.ms_per_mb, own.ms_per_mb))
            return kind;
    known.push_back(own);
    return own;
}

}  // namespace hetseq
