#include <algorithm>

#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

namespace {

bool is_in(std::size_t unit, const ChainStage& stage) {
    return stage.begin <= unit && unit < stage.end;
}

}  // namespace

std::vector<std::size_t> TiedUnits::holders(std::span<const ChainStage> stages) const {
    std::vector<std::size_t> holders;
    for (std::size_t s = 0; s < stages.size(); ++s)
        if (std::ranges::any_of(units, [&](std::size_t unit) { return is_in(unit, stages[s]); }))
            holders.push_back(s);
    return holders;
}

// What two units fill may be the same.
double TiedUnits::sent_mb(const ChainStage& stage) const {
    double part = 0;
    for (std::size_t i = 0; i < units.size(); ++i)
        if (is_in(units[i], stage))
            part += filled.empty() ? 1 : filled[i];
    return part < sent_whole_from ? part * gradients_mb : gradients_mb;
}

}  // namespace hetseq
