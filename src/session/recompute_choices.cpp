#include "hetseq/session/recompute_choices.hpp"

namespace hetseq {

std::vector<std::string> recompute_words() {
    return {"auto", "none", "all"};
}

bool recomputes_at_need(const std::string& word) {
    return word == "auto";
}

}  // namespace hetseq
