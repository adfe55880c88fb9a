#include "hetseq/text/bert/basic_tokenizer.hpp"

namespace hetseq {

namespace {

enum class Accents { by_case, keep, strip };

Option<Accents> accents_option() {
    return named_value_option<Accents>(
               "accents",
               {{"", Accents::by_case}, {"keep", Accents::keep}, {"strip", Accents::strip}},
               "",
               "what becomes of accents; by default they go unless --cased is given")
        .shown_as("keep|strip");
}

}  // namespace

OptionsOf<BasicTokenizerOptions> basic_tokenizer_options() {
    return OptionsOf<BasicTokenizerOptions>()
        .apply(switch_option("cased", "keep case and accents, as cased models need"),
               [](BasicTokenizerOptions& options, bool is_cased) {
                   if (is_cased)
                       options = BasicTokenizerOptions::cased();
               })
        .apply(accents_option(), [](BasicTokenizerOptions& options, Accents accents) {
            if (accents != Accents::by_case)
                options.strip_accents = accents == Accents::strip;
        });
}

}  // namespace hetseq
