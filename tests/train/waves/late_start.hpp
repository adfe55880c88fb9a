#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "hetseq/state/training_state.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/waves/wave_ring.hpp"

namespace hetseq::test {

/// What a run of some staleness begins with, as a session makes it.
struct LateStart {
    LateStart(const FlatParameters& parameters,
              const Model& model,
              std::int64_t staleness,
              TrainingProgress at_first)
        : progress{std::move(at_first)}, make_set{[&parameters, &model] {
              return make_gradient_set(parameters, model);
          }} {
        while (std::ssize(sets) < staleness)
            sets.push_back(make_set());
    }

    /// `sums` are then to be read from the checkpoint of this progress.
    void take(TrainingProgress of_checkpoint) {
        progress = std::move(of_checkpoint);
        const std::size_t count = progress.pending.size();
        const std::size_t own = std::min(count, sets.size());
        while (sums.size() < count - own)
            sums.push_back(make_set());
        sums.insert(sums.end(), sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(own));
    }

    TrainingProgress progress;
    std::function<GradientSet()> make_set;
    std::vector<GradientSet> sets = {};  // as many as the staleness
    std::vector<GradientSet> sums = {};
};

}  // namespace hetseq::test
