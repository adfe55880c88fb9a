#include "bert_text_options.hpp"

namespace hetseq {

BasicTokenizerOptions bert_text_options(const CommandWords& words) {
    BasicTokenizerOptions options;
    if (words.has("cased"))
        options = BasicTokenizerOptions::cased();
    if (!words.text("accents").empty())
        options.strip_accents = words.choice("accents", {"keep", "strip"}) == "strip";
    return options;
}

}  // namespace hetseq
