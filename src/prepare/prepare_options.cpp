#include <cstdint>
#include <limits>

#include "hetseq/text/subwords/train_subwords.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/prepare/prepare_classified.hpp"
#include "hetseq/prepare/prepare_images.hpp"
#include "hetseq/prepare/prepare_numbers.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"
#include "hetseq/prepare/prepare_translation.hpp"

// What `hetseq prepare` takes, form by form.
namespace hetseq {

namespace {

constexpr std::int64_t any_number = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t any_id = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t longest_row = 65536;
constexpr std::int64_t most_columns = 1000;

Option<std::string> output_folder() {
    return text_option("output", "DIR", "", "folder to write the shards to").required();
}

Option<std::string> vocabulary_file() {
    return text_option("vocab", "FILE", "", "the vocabulary, a piece a line").required();
}

Option<bool> overwrite_option() {
    return switch_option("overwrite", "replace all shards that the folder holds, of whatever set");
}

Option<std::int64_t> shards_option(const std::string& help, std::int64_t least) {
    return whole_number_option("shards", least == 0 ? "0" : "1", help, least, most_shards);
}

Option<std::uint64_t> draw_seed() {
    return seed_option("seed of what is drawn");
}

Option<std::string> labels_file(const std::string& what) {
    return text_option(
        "labels",
        "FILE",
        "",
        what + ", one a line, as labels.txt of data or a run; without it those of the text");
}

// Sets of labelled text: train, valid and test.
template <class S>
void add_labelled_sets(OptionsOf<S>& options, const std::string& what) {
    options.add(&S::train, files_option("input", what).required())
        .add(&S::vocabulary, vocabulary_file())
        .add(&S::output, output_folder())
        .add(&S::valid, files_option("valid-input", "the same for validation"))
        .add(&S::test, files_option("test-input", "the same for a last test"));
}

OptionsOf<ParallelText> parallel_text_options() {
    return OptionsOf<ParallelText>()
        .add(&ParallelText::sources,
             files_option("source-text", "text to translate from; plain or gzip").required())
        .add(&ParallelText::targets,
             files_option("target-text", "its translation, line by line in as many files")
                 .required());
}

OptionsOf<ParallelText> valid_text_options() {
    return OptionsOf<ParallelText>()
        .add(&ParallelText::sources, files_option("valid-source-text", "the same for validation"))
        .add(&ParallelText::targets, files_option("valid-target-text", "the same for validation"));
}

OptionsOf<SubwordOptions> subword_options() {
    return OptionsOf<SubwordOptions>()
        .add(&SubwordOptions::vocab_size,
             whole_number_option(
                 "vocab-size",
                 "0",
                 "number of ids of a vocabulary that is trained; a dictionary takes all words "
                 "with 0",
                 0,
                 any_id))
        .add(&SubwordOptions::normalization,
             choice_option(
                 "normalization", subword_normalizations(), "nmt_nfkc", "SentencePiece's rule")
                 .shown_as("RULE"))
        .add(&SubwordOptions::character_coverage,
             number_option("character-coverage",
                           "1",
                           "share of the text's characters that a SentencePiece model has",
                           0.5,
                           1)
                 .shown_as("SHARE"))
        .add(&SubwordOptions::max_sentence_length,
             whole_number_option("max-sentence-length",
                                 "4192",
                                 "bytes: a SentencePiece model is not trained on longer lines; a "
                                 "warning counts them",
                                 1,
                                 any_id));
}

// Sets the kind of the vocabulary, and of the model if it is of subwords.
void add_vocabulary_type(OptionsOf<PrepareTranslationOptions>& options) {
    constexpr const char* dictionary = "dictionary";
    std::vector<std::string> types = subword_model_types();
    types.emplace_back(dictionary);
    options.apply(
        choice_option("model-type",
                      types,
                      "bpe",
                      "bpe or unigram (SentencePiece), or dictionary: words between blanks, for "
                      "text that is segmented already")
            .shown_as("TYPE"),
        [](PrepareTranslationOptions& of, const std::string& type) {
            of.subwords.model_type = type;
            of.type = type == dictionary ? VocabularyType::dictionary : VocabularyType::subwords;
        });
}

OptionsOf<MaskingOptions> masking_options() {
    return OptionsOf<MaskingOptions>()
        .add(&MaskingOptions::most_predictions,
             whole_number_option(
                 "max-predictions", "20", "tokens to predict in a pair at most", 1, longest_row))
        .add(&MaskingOptions::prob,
             number_option("masked-lm-prob", "0.15", "share of a pair's tokens to predict", 0, 1)
                 .shown_as("P"))
        .add(&MaskingOptions::whole_words,
             switch_option("whole-word-masking", "mask all pieces of a word or none"));
}

}  // namespace

OptionsOf<PrepareImagesOptions> prepare_images_options() {
    return OptionsOf<PrepareImagesOptions>()
        .add(&PrepareImagesOptions::output, output_folder())
        .add(&PrepareImagesOptions::shards,
             shards_option("number of shards made from each pair of files", 1))
        .add(&PrepareImagesOptions::overwrite, overwrite_option());
}

OptionsOf<PrepareTranslationOptions> prepare_translation_options() {
    using Of = PrepareTranslationOptions;
    OptionsOf<Of> options;
    options.add(&Of::train, parallel_text_options())
        .add(&Of::output, output_folder())
        .add(&Of::valid, valid_text_options())
        .add(&Of::joined, switch_option("joined", "train one vocabulary for both sides"))
        .add(&Of::subwords, subword_options());
    add_vocabulary_type(options);
    return options
        .add(&Of::source_vocabulary,
             text_option("source-vocabulary",
                         "FILE",
                         "",
                         "take this SentencePiece model or dictionary instead of training one; "
                         "with --joined for both sides"))
        .add(&Of::target_vocabulary,
             text_option("target-vocabulary", "FILE", "", "the same for the target"))
        .add(&Of::sample,
             whole_number_option(
                 "sample",
                 "1000000",
                 "lines that a SentencePiece model is trained on, drawn by --seed; 0: all",
                 0,
                 any_number))
        .add(&Of::seed, draw_seed())
        .add(&Of::max_length,
             whole_number_option("max-length",
                                 "0",
                                 "drop pairs with more tokens in a side; 0: any length",
                                 0,
                                 any_number))
        .add(&Of::max_ratio,
             number_option("max-ratio",
                           "0",
                           "drop pairs whose longer side has more than this many times the tokens "
                           "of the other; 0: any",
                           0,
                           1e9)
                 .shown_as("RATIO"))
        .add(&Of::shards,
             shards_option("number of shards of each set; 0: one for each 100,000 pairs", 0))
        .add(&Of::overwrite, overwrite_option());
}

OptionsOf<PrepareNumbersOptions> prepare_numbers_options() {
    return OptionsOf<PrepareNumbersOptions>()
        .add(&PrepareNumbersOptions::output, output_folder())
        .add(&PrepareNumbersOptions::samples,
             whole_number_option("samples", "100000", "pairs to train on", 1, any_number))
        .add(&PrepareNumbersOptions::seed, draw_seed())
        .add(&PrepareNumbersOptions::overwrite,
             switch_option("overwrite", "replace the texts, and all shards that the folder holds"));
}

OptionsOf<PrepareBertOptions> prepare_bert_options() {
    using Of = PrepareBertOptions;
    return OptionsOf<Of>()
        .add(&Of::train,
             files_option("input",
                          "the text, plain or gzip: a sentence a line, a blank line between "
                          "documents")
                 .required())
        .add(&Of::vocabulary, vocabulary_file())
        .add(&Of::output, output_folder())
        .add(&Of::valid, files_option("valid-input", "the same for validation"))
        .add(&Of::text, basic_tokenizer_options())
        .add(&Of::seq_length,
             whole_number_option(
                 "seq-length", "128", "tokens of a pair, [CLS] and [SEP] included", 5, longest_row))
        .add(&Of::masking, masking_options())
        .add(
            &Of::copies,
            whole_number_option(
                "dupe-factor", "5", "copies of the text, each with other pairs and masks", 1, 1000))
        .add(&Of::short_pair_prob,
             number_option(
                 "short-seq-prob", "0.1", "share of the documents whose pairs are shorter", 0, 1)
                 .shown_as("P"))
        .add(&Of::masks,
             named_value_option<Of::Masks>(
                 "static-masks",
                 {{"on", Of::Masks::in_shards}, {"off", Of::Masks::when_loaded}},
                 "on",
                 "off: keep pairs unmasked and without padding; training masks them anew in each "
                 "epoch")
                 .shown_as("on|off"))
        .add(&Of::seed, draw_seed())
        .add(&Of::shards,
             shards_option("number of shards of each set; 0: one for each 16 MiB of text", 0))
        .add(&Of::overwrite, overwrite_option());
}

OptionsOf<PrepareTaggedOptions> prepare_tagged_options() {
    using Of = PrepareTaggedOptions;
    OptionsOf<Of> options;
    add_labelled_sets(options,
                      "the text, plain or gzip: a word and its IOB2 tag a line, a blank line "
                      "between sentences");
    return options.add(&Of::text, basic_tokenizer_options())
        .add(&Of::tags, labels_file("the tags"))
        .add(&Of::word_column,
             whole_number_option(
                 "word-column", "1", "the column of the words, from 1", 1, most_columns))
        .add(&Of::tag_column,
             whole_number_option(
                 "tag-column", "0", "the column of the tags, from 1; 0: the last", 0, most_columns))
        .add(&Of::max_length,
             whole_number_option("max-length",
                                 "512",
                                 "pieces of a sentence, [CLS] and [SEP] included; a longer one is "
                                 "cut behind a word",
                                 3,
                                 longest_row))
        .add(&Of::shards, shards_option("number of shards of each set", 1))
        .add(&Of::overwrite, overwrite_option());
}

OptionsOf<PrepareClassifiedOptions> prepare_classified_options() {
    using Of = PrepareClassifiedOptions;
    OptionsOf<Of> options;
    add_labelled_sets(options, "the tables, plain or gzip: columns between tabs, or CSV");
    return options
        .add(&Of::text_column,
             text_option("text-column",
                         "COLUMN",
                         "1",
                         "the column of the texts: its number, from 1, or its name in the first "
                         "row"))
        .add(&Of::pair_column,
             text_option(
                 "pair-column", "COLUMN", "", "the column of second texts, where two are compared"))
        .add(&Of::label_column,
             text_option("label-column", "COLUMN", "0", "the column of the labels; 0: the last"))
        .add(
            &Of::has_header,
            switch_option("header", "the first row holds names, though no column is given by name"))
        .add(&Of::format,
             named_value_option<std::optional<TableFormat>>(
                 "format",
                 {{"auto", std::nullopt}, {"tsv", TableFormat::tsv}, {"csv", TableFormat::csv}},
                 "auto",
                 "csv takes commas and quotes; auto: csv for files named .csv or .csv.gz")
                 .shown_as("auto|tsv|csv"))
        .add(&Of::is_number, switch_option("numbers", "labels are numbers to predict (regression)"))
        .add(&Of::labels, labels_file("the labels"))
        .add(&Of::text, basic_tokenizer_options())
        .add(&Of::max_length,
             whole_number_option("max-length",
                                 "512",
                                 "pieces of a row, [CLS] and [SEP] included; of a longer one the "
                                 "longer text is cut",
                                 5,
                                 longest_row))
        .add(&Of::shards, shards_option("number of shards of each set", 1))
        .add(&Of::overwrite, overwrite_option());
}

}  // namespace hetseq
