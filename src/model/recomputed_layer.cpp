#include "recomputed_layer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "hetseq/model/recomputed.hpp"

namespace hetseq::detail {

namespace {

bool is_pair(const Rows& rows) {
    return !rows.factors.is_same(rows.wide);
}

// Two tensors each, or one where they are the same.
std::vector<at::Tensor> tensors_of(const std::vector<Rows>& all) {
    std::vector<at::Tensor> tensors;
    for (const Rows& rows : all) {
        tensors.push_back(rows.wide);
        if (is_pair(rows))
            tensors.push_back(rows.factors);
    }
    return tensors;
}

// A layer of a pass, with all that it needs when the pass is over.
struct KeptLayer {
    MicroBatch batch;
    ForwardContext context;
    std::uint32_t first_dropout;
    std::vector<bool> pairs;  // which of the inputs are two tensors
    LayerComputation layer;
    std::uint32_t next_dropout = 0;

    std::vector<at::Tensor> run(const std::vector<at::Tensor>& given) {
        std::vector<Rows> inputs;
        auto next = given.begin();
        for (const bool two : pairs) {
            const at::Tensor& wide = *next++;
            inputs.push_back({wide, two ? *next++ : wide});
        }
        ForwardPass pass{batch, context, first_dropout};
        const Rows made = layer(inputs, pass);
        next_dropout = pass.dropouts;
        return tensors_of({made});
    }
};

}  // namespace

bool any_trains(std::initializer_list<Affine> parameters) {
    return std::any_of(parameters.begin(), parameters.end(), [](const Affine& one) {
        return one.weight.requires_grad() || one.bias.requires_grad();
    });
}

Rows run_layer(ForwardPass& pass,
               const std::vector<Rows>& inputs,
               bool again,
               bool trains,
               const LayerComputation& layer) {
    if (!again)
        return layer(inputs, pass);
    std::vector<bool> pairs;
    for (const Rows& rows : inputs)
        pairs.push_back(is_pair(rows));
    const auto kept = std::make_shared<KeptLayer>(
        KeptLayer{pass.batch, pass.context, pass.dropouts, std::move(pairs), layer});
    const std::vector<at::Tensor> outputs = recomputed(
        tensors_of(inputs), trains, [kept](const auto& given) { return kept->run(given); });
    pass.dropouts = kept->next_dropout;
    return {outputs.front(), outputs.back()};
}

}  // namespace hetseq::detail
