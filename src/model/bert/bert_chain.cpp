// BERT as a chain of units.
#include <algorithm>

#include "hetseq/util/error.hpp"

#include "bert_encoder.hpp"

namespace hetseq::detail {

namespace {

const std::string embeddings_prefix = "bert.embeddings.";
const std::string layer_prefix = "bert.encoder.layer.";

// The number of a unit's first dropout: the embeddings have one, each layer has three.
std::uint32_t first_dropout(std::size_t unit) {
    return unit == 0 ? 0 : static_cast<std::uint32_t>(1 + 3 * (unit - 1));
}

}  // namespace

std::size_t BertEncoder::unit_of(const std::string& parameter_name) const {
    if (parameter_name.starts_with(embeddings_prefix))
        return 0;
    if (parameter_name.starts_with(layer_prefix))
        return 1 + std::stoul(parameter_name.substr(layer_prefix.size()));
    return head_unit();
}

std::vector<ChainUnit> BertEncoder::chain() const {
    std::vector<ChainUnit> units{{"embeddings", {}}};
    units.resize(layers_.size(), {"layer", {}, true});
    units.push_back({"last layer", {}, true});
    units.push_back({"head", {}});
    for (const NamedTensor& parameter : named_parameters())
        units[unit_of(parameter.name)].parameters.push_back(parameter.name);
    return units;
}

ForwardResult BertEncoder::forward(const MicroBatch& batch, const ForwardContext& context) {
    return run_units({0, head_unit() + 1}, {}, batch, context).result;
}

Carried BertEncoder::run_units(UnitRange units,
                               const Carried& carried,
                               const MicroBatch& batch,
                               const ForwardContext& context) {
    const std::size_t head = head_unit();
    HETSEQ_ASSERT(!units.empty() && units.end <= head + 1);
    ForwardPass pass{batch, context, first_dropout(units.begin)};
    const UnitRange body{std::min(units.begin, head), std::min(units.end, head)};
    const at::Tensor of_head = body.contains(head - 1) ? places(batch) : at::Tensor{};
    const at::Tensor hidden =
        body.empty() ? carried.tensors.front() : run_body(body, carried, of_head, pass);
    if (!units.contains(head))
        return {.tensors = {hidden}, .result = {}};
    HETSEQ_ASSERT(pass.dropouts == first_dropout(head));
    return {.tensors = {}, .result = result(hidden, pass)};
}

at::Tensor BertEncoder::run_body(UnitRange units,
                                 const Carried& carried,
                                 const at::Tensor& places,
                                 ForwardPass& pass) const {
    const TokenRows rows{pass.batch};
    Rows x = units.begin == 0 ? embed(rows, pass) : rows_of(carried.tensors.front());
    const std::size_t last = layers_.size();
    for (std::size_t unit = std::max(units.begin, std::size_t{1}); unit < units.end; ++unit) {
        HETSEQ_ASSERT(pass.dropouts == first_dropout(unit));
        if (unit == last)
            return run_last(x, rows, places, pass);
        x = run(unit, x, pass, [this, unit, rows](const auto& inputs, ForwardPass& of) {
            return encode(inputs.front(), rows, layers_[unit - 1], of);
        });
    }
    return x.wide;
}

}  // namespace hetseq::detail
