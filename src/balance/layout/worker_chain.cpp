#include "worker_chain.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// units^2 * classes^2 * product (count + 1): some 30 ms. The devices left are about as many as 26
// units have stages.
constexpr double most_work = 1e7;

double search_work(std::span<const std::size_t> devices, std::size_t units) {
    double ways = 1, classes = 0;
    for (const std::size_t count : devices) {
        ways *= static_cast<double>(count + 1);
        classes += count > 0 ? 1 : 0;
    }
    const double stages = classes * static_cast<double>(units);
    return stages * stages * ways;
}

}  // namespace

StateTable::StateTable(const LayoutProblem& problem, std::size_t sharded_over)
    : units_{problem.units()} {
    for (const LayoutProblem::Size& size : problem.sizes) {
        auto& by_class = mb_.emplace_back();
        for (std::size_t c = 0; c < size.chain.devices.size(); ++c) {
            std::vector<double>& mb = by_class.emplace_back((units_ + 1) * (units_ + 1), 0);
            for (std::size_t begin = 0; begin < units_; ++begin)
                for (std::size_t end = begin + 1; end <= units_; ++end)
                    mb[begin * (units_ + 1) + end] = size.chain.state_mb(begin, end, c);
            if (sharded_over > 1)
                mb[units_] = problem.sharded_state_mb(c, sharded_over);
        }
    }
}

double StateTable::mb(std::size_t size, const ChainStage& stage) const {
    return mb_[size][stage.device_class][stage.begin * (units_ + 1) + stage.end];
}

std::vector<ChainStage> WorkerChain::in_layout(std::span<const ChainStage> stages) const {
    std::vector<ChainStage> renamed(stages.begin(), stages.end());
    for (ChainStage& stage : renamed)
        stage.device_class = classes[stage.device_class];
    return renamed;
}

WorkerChain worker_chain(const LayoutProblem& problem,
                         const StateTable& state,
                         std::size_t size,
                         const WorkerKind& kind) {
    const std::vector<std::size_t>& devices = kind.devices;
    const ChainProblem& all = problem.sizes[size].chain;
    WorkerChain chain;
    for (std::size_t c = 0; c < devices.size(); ++c)
        if (devices[c] > 0)
            chain.classes.push_back(c);
    ChainProblem& own = chain.problem = all;
    own.devices.clear();
    own.links.clear();
    for (const std::size_t c : chain.classes) {
        own.devices.push_back(all.devices[c]);
        own.devices.back().count = devices[c];
        auto& links = own.links.emplace_back();
        for (const std::size_t to : chain.classes)
            links.push_back(kind.link(all, c, to));
    }
    own.state_mb = [&state, size, classes = chain.classes](
                       std::size_t begin, std::size_t end, std::size_t device_class) {
        return state.mb(size, {classes[device_class], begin, end});
    };
    return chain;
}

std::vector<std::size_t> searchable_devices(std::vector<std::size_t> devices, std::size_t units) {
    for (std::size_t& count : devices)
        count = std::min(count, units);
    while (search_work(devices, units) > most_work) {
        const auto most = std::max_element(devices.rbegin(), devices.rend());
        if (*most == 1)
            break;
        --*most;
    }
    return devices;
}

}  // namespace hetseq
