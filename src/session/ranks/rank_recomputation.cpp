#include "hetseq/session/ranks/rank_recomputation.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/session/rank_list.hpp"
#include "hetseq/session/word_choices.hpp"

namespace hetseq {

std::string rank_recomputation(const std::string& list, const Topology& topology, int rank) {
    return rank_word("recompute", list, recompute_words(), topology, rank, OrNumber::yes);
}

std::int64_t recomputed_in_stage(const std::string& word, const Model& model) {
    if (recomputes_at_need(word) || word == "none")
        return 0;
    const std::int64_t most = model.recomputable_layers();
    return word == "all" ? most : std::min<std::int64_t>(std::stoll(word), most);
}

std::int64_t recomputed_from_start(const std::string& word, const Model& model) {
    if (recomputes_at_need(word))
        return 0;
    const std::int64_t most = model.recomputable_layers();
    const std::int64_t layers = word == "none" ? 0 : word == "all" ? most : std::stoll(word);
    if (most == 0 && (layers > 0 || word == "all"))
        throw BadConfig("--recompute " + word + " with this model",
                        "it has no layers to compute again: BERT and the Transformer have, and a "
                        "task in Python may name some",
                        "leave --recompute out");
    if (layers > most)
        throw BadConfig("--recompute " + word,
                        "the model has " + count_text(most, "layer"),
                        "give at most as many, or all");
    return layers;
}

}  // namespace hetseq
