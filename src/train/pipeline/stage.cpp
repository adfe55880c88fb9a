#include "hetseq/train/pipeline/stage.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

std::vector<bool> trains_up_to(const Model& model) {
    const NamedTensors parameters = model.named_parameters();
    std::vector<bool> trains;
    bool any = false;
    for (const ChainUnit& unit : model.chain()) {
        for (const std::string& name : unit.parameters)
            any = any || parameters[name].requires_grad();
        trains.push_back(any);
    }
    return trains;
}

Stage stage_of(const Model& model,
               const ChainCut& cut,
               const std::vector<int>& ranks,
               std::size_t number) {
    HETSEQ_ASSERT(cut.units.size() == ranks.size() && number < ranks.size());
    const std::vector<bool> trains = trains_up_to(model);
    Stage stage{.units = cut.units[number], .number = number, .stages = ranks.size()};
    stage.most_in_flight = std::max<std::size_t>(cut.most_in_flight[number], 1);
    if (number > 0) {
        stage.previous = ranks[number - 1];
        stage.sends_gradients = trains[stage.units.begin - 1];
    }
    if (number + 1 < ranks.size()) {
        stage.next = ranks[number + 1];
        stage.gets_gradients = trains[stage.units.end - 1];
    }
    return stage;
}

}  // namespace hetseq
