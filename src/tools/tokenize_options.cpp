#include "hetseq/tools/tokenize_command.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_word_characters = 1'000'000;

OptionsOf<BertTokenizerOptions> tokenizer_options() {
    using Of = BertTokenizerOptions;
    return OptionsOf<Of>()
        .add(&Of::basic, basic_tokenizer_options())
        .apply(switch_option("keep-special",
                             "take [MASK], [CLS], [SEP], [PAD] and [UNK] in a line as pieces"),
               [](Of& options, bool are_kept) {
                   if (are_kept)
                       options.special = Of::SpecialPieces::kept;
               })
        .apply(whole_number_option("max-word-characters",
                                   "200",
                                   "a longer word is [UNK]; Hugging Face's programs take 100",
                                   1,
                                   most_word_characters),
               [](Of& options, std::int64_t count) {
                   options.most_characters = static_cast<std::size_t>(count);
               });
}

}  // namespace

OptionsOf<TokenizeOptions> tokenize_options() {
    return OptionsOf<TokenizeOptions>()
        .add(&TokenizeOptions::vocabulary,
             text_option("vocab", "FILE", "", "the vocabulary, a piece a line").required())
        .add(&TokenizeOptions::tokenizer, tokenizer_options())
        .add(&TokenizeOptions::as_pieces,
             switch_option("tokens", "print the pieces instead of their ids"));
}

}  // namespace hetseq
