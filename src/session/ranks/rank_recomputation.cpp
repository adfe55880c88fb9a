#include "hetseq/session/ranks/rank_recomputation.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/session/rank_list.hpp"
#include "hetseq/session/word_choices.hpp"

namespace hetseq {

namespace {

// 0 where memory decides.
std::int64_t asked_layers(const std::string& word, std::int64_t most) {
    if (recomputes_at_need(word) || word == "none")
        return 0;
    return word == "all" ? most : std::stoll(word);
}

}  // namespace

std::string rank_recomputation(const std::string& list, const Topology& topology, int rank) {
    return rank_word("recompute", list, recompute_words(), topology, rank, OrNumber::yes);
}

std::int64_t recomputed_in_stage(const std::string& word, const Model& model) {
    const std::int64_t most = model.recomputable_layers();
    return std::min(asked_layers(word, most), most);
}

std::int64_t recomputed_from_start(const std::string& word, const Model& model) {
    const std::int64_t most = model.recomputable_layers();
    const std::int64_t layers = asked_layers(word, most);
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
