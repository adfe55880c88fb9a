#include <cstdio>
#include <filesystem>
#include <string>

#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/state/existing_folder.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/session/discover_devices.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/ranks/own_choice.hpp"
#include "hetseq/session/ranks/rank_precision.hpp"
#include "hetseq/session/threads.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"

#include "app/commands/command_options.hpp"
#include "app/commands/model_choice.hpp"
#include "app/lines/line_dispatcher.hpp"
#include "app/lines/progress_line.hpp"
#include "app/translation/translation_ranks.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

struct Translation {
    fs::path folder;
    std::string checkpoint;
    BeamOptions beam;
    TextOptions text;
    Options common;  // device, threads, precision
};

Translation translation_of(const CommandWords& words) {
    const TranslateOptions options = words.read(translate_options());
    check(options.beam);
    Translation translation;
    translation.folder = words.arguments.front();
    translation.checkpoint = options.checkpoint;
    translation.beam = options.beam;
    translation.text.hypotheses = options.beam.hypotheses;
    translation.text.print_scores = options.print_scores;
    translation.text.caps.sentences = options.batch_sentences;
    translation.text.caps.tokens = options.batch_source_tokens;
    translation.text.window = 32 * options.batch_sentences;
    translation.common = typed_options(words.options);
    return translation;
}

// Of the parameters.
at::ScalarType type_of(Precision precision) {
    switch (precision) {
        case Precision::fp64:
            return at::kDouble;
        case Precision::bf16:
            return at::kBFloat16;
        case Precision::fp16:
            return at::kHalf;
        default:
            return at::kFloat;
    }
}

// What translates with the run's model.
const TranslationPart& translating_part(const fs::path& folder, const Parts& parts) {
    const std::string advice = "give the folder of a translation run, its --save-dir";
    check_folder(folder);
    const std::string type = model_type_in(folder);
    if (type.empty())
        throw MissingInput(folder.string() + " holds no translation model",
                           "there is no config.json in it that names a model_type",
                           advice);
    if (!parts.translations.has(type))
        throw BadConfig(folder.string() + " holds no translation model",
                        "config.json's model_type is '" + type + "', which does not translate",
                        advice);
    return parts.translations.get(type);
}

// Where a rank translates, and in what.
struct Place {
    at::Device device;
    Precision precision;
};

TranslationModel load_translation_model(const Translation& options,
                                        const Parts& parts,
                                        const Place& place) {
    const at::ScalarType type = type_of(place.precision);
    TranslationModel model =
        translating_part(options.folder, parts)(options.folder, [&](Model& network) {
            network.to(type);
            load_chosen_model(options.folder, options.checkpoint, network);
            network.to(place.device, type);
        });
    log::info("translates with " + chosen_model_name(options.folder, options.checkpoint));
    return model;
}

/// How much is done, the rate and the time that is left. How much there is to do is known when all
/// was read.
std::string progress_text(const TextTranslation& text, const LineSource& input, double seconds) {
    const double done = text.share_done();
    std::string result = count_text(text.lines(), "line") + "  " +
                         format_number(static_cast<double>(text.tokens()) / seconds) + " tokens/s";
    if (input.at_end() && done > 0)
        result = percent_text(done, 3) + " of " + result + "  ETA " +
                 format_duration(seconds / done * (1 - done));
    return result;
}

void report(const TextTranslation& text, double seconds, const TextOptions& options) {
    if (text.cut_lines() > 0)
        log::warn("lines with more than the model's " + std::to_string(options.max_positions - 1) +
                  " tokens: " + std::to_string(text.cut_lines()) + " (the first is line " +
                  std::to_string(text.first_cut_line()) + "); only their beginning was translated");
    log::info("translated " + count_text(text.lines(), "line") + ", " +
              count_text(text.tokens(), "token") + ", in " + format_number(seconds, 4) + " s (" +
              format_number(static_cast<double>(text.tokens()) / seconds) + " tokens/s)");
}

// Returns an error of the input; the other ranks know the end then, as without one.
std::exception_ptr lead(Mailbox& mailbox,
                        TranslationModel& model,
                        const Translation& options,
                        at::Device device) {
    TextTranslation text(model.source, model.target, options.text);
    LineSource input(STDIN_FILENO, "standard input");
    TranslationWorker own(
        [&](TranslationBatch& batch) { return translated(model.translator, batch, options.beam); },
        device);
    ProgressLine progress(ProgressLine::Streams::used);
    const std::exception_ptr failure = run_translation(mailbox, own, input, text, [&] {
        progress.show([&](double seconds) { return progress_text(text, input, seconds); });
    });
    if (!is_reader_left(failure))
        report(text, progress.seconds(), options.text);
    return failure;
}

// On CPUs the decoder's own loops compute in fp32 and fp64, and are the fastest.
Precision translating_precision(PrecisionChoice choice, const RankInfo& info, at::Device device) {
    return !choice && device.is_cpu() ? Precision::fp32 : rank_precision(choice, info, device);
}

Place set_up_rank(const HostComm& world, const Options& options) {
    const Topology topology = discover_devices(world, options);
    const RankInfo& rank = topology.rank(world.rank());
    const RankPlace where(topology, world.rank());
    const std::int64_t asked =
        own_choice(world, option_name(any_options().threads), options.threads, where);
    const ThreadChoice choice =
        choose_threads(rank, topology.ranks_on_host_of(world.rank()), static_cast<int>(asked));
    if (!choice.warning.empty())
        log::warn_here(choice.warning);
    at::set_num_threads(choice.threads);
    Place place{at::Device(rank.device), Precision::fp32};
    const PrecisionChoice precision =
        own_choice(world, option_name(any_options().precision), options.precision, where);
    place.precision =
        agree_on(world, [&] { return translating_precision(precision, rank, place.device); });
    compute_in(place.precision);
    return place;
}

}  // namespace

int translate_command(const CommandContext& context) {
    const HostComm& world = context.world;
    Translation options = agree_on(world, [&] { return translation_of(context.words); });
    const Place place = set_up_rank(world, options.common);
    TranslationModel model =
        agree_on(world, [&] { return load_translation_model(options, context.parts, place); });
    options.text.max_positions = model.translator.max_positions();
    Mailbox mailbox(world);
    return run_or_end(context.meeting, [&] {
        std::exception_ptr failure;
        if (world.rank() == 0)
            failure = lead(mailbox, model, options, place.device);
        else
            serve_translations(mailbox, model.translator, options.beam);
        agree_on_end(world, failure);
    });
}

}  // namespace hetseq
