#include "hetseq/train/pipeline/stage.hpp"

#include <algorithm>
#include <string>

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

void add_holders(const Model& model,
                 const ChainCut& cut,
                 const std::vector<int>& ranks,
                 ParameterHolders& holders) {
    const std::vector<ChainUnit> chain = model.chain();
    for (std::size_t stage = 0; stage < cut.units.size(); ++stage)
        for (std::size_t unit = cut.units[stage].begin; unit < cut.units[stage].end; ++unit)
            for (const std::string& name : chain[unit].parameters)
                if (std::vector<int>& of_one = holders[name];
                    of_one.empty() || of_one.back() != ranks[stage])
                    of_one.push_back(ranks[stage]);
}

}  // namespace hetseq
