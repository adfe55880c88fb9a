#include "hetseq/train/pipeline/stage.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

namespace {

// Any parameter of units [0, end).
bool trains_before(const Model& model, const std::vector<ChainUnit>& chain, std::size_t end) {
    const NamedTensors parameters = model.named_parameters();
    for (std::size_t unit = 0; unit < end; ++unit)
        for (const std::string& name : chain[unit].parameters)
            if (parameters[name].requires_grad())
                return true;
    return false;
}

}  // namespace

Stage stage_of(const Model& model,
               const ChainCut& cut,
               const std::vector<int>& ranks,
               std::size_t number) {
    HETSEQ_ASSERT(cut.units.size() == ranks.size() && number < ranks.size());
    const std::vector<ChainUnit> chain = model.chain();
    Stage stage{.units = cut.units[number], .number = number, .stages = ranks.size()};
    stage.most_in_flight = std::max<std::size_t>(cut.most_in_flight[number], 1);
    if (number > 0) {
        stage.previous = ranks[number - 1];
        stage.sends_gradients = trains_before(model, chain, stage.units.begin);
    }
    if (number + 1 < ranks.size()) {
        stage.next = ranks[number + 1];
        stage.gets_gradients = trains_before(model, chain, stage.units.end);
    }
    return stage;
}

}  // namespace hetseq
