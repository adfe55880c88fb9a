#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "hetseq/util/name_list.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "preparation_progress.hpp"
#include "prepare_bert.hpp"
#include "prepare_classification.hpp"
#include "prepare_ner.hpp"
#include "prepare_report.hpp"
#include "prepare_vocabulary.hpp"

#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/data/prepare_images.hpp"
#include "hetseq/data/prepare_numbers.hpp"
#include "hetseq/data/prepare_translation.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_ids = std::numeric_limits<std::int32_t>::max();
constexpr const char* dictionary_type = "dictionary";

// One rank suffices: images are few.
void prepare_images_of(const CommandContext& context) {
    const CommandWords& words = context.words;
    agree_on(context.world, [&] {
        const PrepareImagesOptions options{
            .inputs = words.arguments,
            .output = words.text("output"),
            .shards = static_cast<int>(words.whole_number("shards", 1, most_shards)),
            .overwrite = words.has("overwrite")};
        if (context.world.rank() != 0)
            return;
        for (const PreparedShard& shard : prepare_images(options))
            std::printf(
                "%s: %lld samples\n", shard.path.c_str(), static_cast<long long>(shard.samples));
    });
}

std::uint64_t seed_of(const CommandWords& words) {
    return static_cast<std::uint64_t>(words.whole_number("seed", 0, any));
}

PrepareTranslationOptions translation_options(const CommandWords& words) {
    const auto files = [&](const std::string& option) {
        return split_file_names(words.text(option));
    };
    std::vector<std::string> types = subword_model_types();
    types.emplace_back(dictionary_type);
    const std::string& type = words.choice("model-type", types);
    const bool is_dictionary = type == dictionary_type;
    SubwordOptions subwords;
    subwords.model_type = type;
    subwords.vocab_size = words.whole_number("vocab-size", 0, most_ids);
    subwords.normalization = words.choice("normalization", subword_normalizations());
    subwords.character_coverage = words.number("character-coverage", 0.5, 1);
    subwords.max_sentence_length = words.whole_number("max-sentence-length", 1, most_ids);
    return {.train = {files("source-text"), files("target-text")},
            .valid = {files("valid-source-text"), files("valid-target-text")},
            .output = words.text("output"),
            .shards = words.whole_number("shards", 0, most_shards),
            .type = is_dictionary ? VocabularyType::dictionary : VocabularyType::subwords,
            .subwords = subwords,
            .joined = words.has("joined"),
            .source_vocabulary = words.text("source-vocabulary"),
            .target_vocabulary = words.text("target-vocabulary"),
            .sample = words.whole_number("sample", 0, any),
            .seed = seed_of(words),
            .max_length = words.whole_number("max-length", 0, any),
            .max_ratio = words.number("max-ratio", 0, 1e9),
            .overwrite = words.has("overwrite")};
}

PreparedTranslation prepare_pairs(const CommandContext& context) {
    const CommandWords& words = context.words;
    if (words.form == "translation") {
        auto options = agree_on(context.world, [&] { return translation_options(words); });
        PreparationProgress progress;
        options.progress = [&](std::int64_t done, std::int64_t total) {
            progress.show(done, total);
        };
        return prepare_translation(context.world, options);
    }
    const auto options = agree_on(context.world, [&] {
        return PrepareNumbersOptions{.output = words.text("output"),
                                     .samples = words.whole_number("samples", 1, any),
                                     .seed = seed_of(words),
                                     .overwrite = words.has("overwrite")};
    });
    return prepare_numbers(context.world, options);
}

}  // namespace

int prepare_command(const CommandContext& context) {
    if (context.words.form == "images") {
        prepare_images_of(context);
        return 0;
    }
    if (context.words.form == "vocabulary") {
        prepare_vocabulary_of(context);
        return 0;
    }
    if (context.words.form == "bert") {
        prepare_bert_of(context);
        return 0;
    }
    if (context.words.form == "ner") {
        prepare_ner_of(context);
        return 0;
    }
    if (context.words.form == "classification") {
        prepare_classification_of(context);
        return 0;
    }
    const PreparedTranslation prepared = prepare_pairs(context);
    if (context.world.rank() == 0)
        std::fputs(prepared_text(prepared).c_str(), stdout);
    return 0;
}

}  // namespace hetseq
