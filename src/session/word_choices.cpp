#include "hetseq/session/word_choices.hpp"

#include "hetseq/util/precision.hpp"

namespace hetseq {

std::vector<std::string> precision_choices() {
    std::vector<std::string> words = precision_words();
    words.insert(words.begin(), "auto");
    return words;
}

std::vector<std::string> recompute_words() {
    return {"auto", "none", "all"};
}

bool recomputes_at_need(const std::string& word) {
    return word == "auto";
}

std::vector<std::string> shard_words() {
    return {"memory", "even"};
}

}  // namespace hetseq
