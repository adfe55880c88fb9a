#include "near_cuts.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hetseq {

namespace {

// The boundary behind stage `s` at `unit`; a stage that then has no units is left out.
std::vector<ChainStage> with_boundary(std::span<const ChainStage> stages,
                                      std::size_t s,
                                      std::size_t unit) {
    std::vector<ChainStage> moved(stages.begin(), stages.end());
    moved[s].end = moved[s + 1].begin = unit;
    std::erase_if(moved, [](const ChainStage& stage) { return stage.begin == stage.end; });
    return moved;
}

void add_moves(std::span<const ChainStage> stages, std::vector<std::vector<ChainStage>>& cuts) {
    for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
        const ChainStage &front = stages[s], &behind = stages[s + 1];
        cuts.push_back(with_boundary(stages, s, front.begin));
        cuts.push_back(with_boundary(stages, s, behind.end));
        if (front.end - front.begin > 1)
            cuts.push_back(with_boundary(stages, s, front.end - 1));
        if (behind.end - behind.begin > 1)
            cuts.push_back(with_boundary(stages, s, front.end + 1));
        if (front.device_class != behind.device_class) {
            cuts.emplace_back(stages.begin(), stages.end());
            std::swap(cuts.back()[s].device_class, cuts.back()[s + 1].device_class);
        }
    }
}

void add_device(std::span<const ChainStage> stages,
                std::size_t device_class,
                std::vector<std::vector<ChainStage>>& cuts) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const ChainStage& stage = stages[s];
        if (stage.device_class != device_class) {
            cuts.emplace_back(stages.begin(), stages.end());
            cuts.back()[s].device_class = device_class;
        }
        const std::size_t middle = stage.begin + (stage.end - stage.begin) / 2;
        if (middle == stage.begin)
            continue;
        for (const std::size_t front : {s, s + 1}) {
            std::vector<ChainStage> split(stages.begin(), stages.end());
            split[s].end = middle;
            split.insert(split.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                         {stage.device_class, middle, stage.end});
            split[front].device_class = device_class;
            cuts.push_back(std::move(split));
        }
    }
}

}  // namespace

std::vector<std::vector<ChainStage>> near_cuts(std::span<const ChainStage> stages,
                                               std::span<const std::size_t> devices) {
    std::vector<std::vector<ChainStage>> cuts;
    add_moves(stages, cuts);
    for (std::size_t c = 0; c < devices.size(); ++c) {
        const auto used = std::count_if(stages.begin(), stages.end(), [c](const auto& stage) {
            return stage.device_class == c;
        });
        if (static_cast<std::size_t>(used) < devices[c])
            add_device(stages, c, cuts);
    }
    return cuts;
}

}  // namespace hetseq
