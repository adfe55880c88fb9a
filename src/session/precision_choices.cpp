#include "hetseq/session/precision_choices.hpp"

#include "hetseq/util/precision.hpp"

namespace hetseq {

std::vector<std::string> precision_choices() {
    std::vector<std::string> words = precision_words();
    words.insert(words.begin(), "auto");
    return words;
}

}  // namespace hetseq
