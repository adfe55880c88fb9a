#include "hetseq/session/ranks/rank_recomputation.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

std::int64_t recomputed_in_stage(RecomputeChoice choice, const Model& model) {
    return std::min(choice.value_or(0), model.recomputable_layers());
}

std::int64_t recomputed_from_start(RecomputeChoice choice, const Model& model) {
    const std::int64_t most = model.recomputable_layers();
    const std::int64_t layers = choice.value_or(0);
    if (most == 0 && layers > 0)
        throw BadConfig("--recompute " + choice_text(choice) + " with this model",
                        "it has no layers to compute again: BERT and the Transformer have, and a "
                        "task in Python may name some",
                        "leave --recompute out");
    if (layers > most && layers != all_layers)
        throw BadConfig("--recompute " + choice_text(choice),
                        "the model has " + count_text(most, "layer"),
                        "give at most as many, or all");
    return std::min(layers, most);
}

}  // namespace hetseq
