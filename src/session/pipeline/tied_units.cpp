#include "tied_units.hpp"

#include <map>

#include "hetseq/util/quantity.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

std::vector<TiedUnits> tied_units(const Model& model,
                                  at::ScalarType gradients,
                                  const std::vector<double>& filled) {
    const NamedTensors parameters = model.named_parameters();
    std::map<std::vector<std::size_t>, double> elements;
    for (const auto& [name, units] : readers_by_parameter(model.chain()))
        if (units.size() > 1 && parameters[name].requires_grad())
            elements[units] += static_cast<double>(parameters[name].numel());
    std::vector<TiedUnits> tied;
    for (const auto& [units, count] : elements) {
        TiedUnits& own = tied.emplace_back();
        own.units = units;
        own.gradients_mb = count * static_cast<double>(c10::elementSize(gradients)) / bytes_of_mib;
        for (const std::size_t unit : units)
            own.filled.push_back(filled[unit]);
    }
    return tied;
}

}  // namespace hetseq
