#include <cstdint>
#include <cstdio>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/prepare/prepare_images.hpp"
#include "hetseq/prepare/prepare_numbers.hpp"
#include "hetseq/prepare/prepare_translation.hpp"
#include "hetseq/app/commands.hpp"

#include "preparation_progress.hpp"
#include "prepare_bert.hpp"
#include "prepare_classification.hpp"
#include "prepare_ner.hpp"
#include "prepare_report.hpp"
#include "prepare_vocabulary.hpp"

namespace hetseq {

namespace {

// One rank suffices: images are few.
void prepare_images_of(const CommandContext& context) {
    agree_on(context.world, [&] {
        PrepareImagesOptions options = context.words.read(prepare_images_options());
        options.inputs = context.words.arguments;
        if (context.world.rank() != 0)
            return;
        for (const PreparedShard& shard : prepare_images(options))
            std::printf(
                "%s: %lld samples\n", shard.path.c_str(), static_cast<long long>(shard.samples));
    });
}

PreparedTranslation prepare_pairs(const CommandContext& context) {
    const CommandWords& words = context.words;
    if (words.form == "translation") {
        auto options =
            agree_on(context.world, [&] { return words.read(prepare_translation_options()); });
        PreparationProgress progress;
        options.progress = [&](std::int64_t done, std::int64_t total) {
            progress.show(done, total);
        };
        return prepare_translation(context.world, options);
    }
    const auto options =
        agree_on(context.world, [&] { return words.read(prepare_numbers_options()); });
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
