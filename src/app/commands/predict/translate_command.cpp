#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <unistd.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/vocabulary.hpp"
#include "hetseq/state/existing_folder.hpp"
#include "hetseq/model/decoding/translator.hpp"
#include "hetseq/model/transformer/transformer.hpp"
#include "hetseq/session/discover_devices.hpp"
#include "hetseq/session/list_warning.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/rank_list.hpp"
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

at::ScalarType translating_type(const std::string& precision) {
    if (precision != "fp32" && precision != "fp64")
        throw BadConfig("--precision " + precision + " for a translation",
                        "hetseq translates in fp32 or fp64",
                        "leave it out, or give one of these");
    return precision == "fp64" ? at::kDouble : at::kFloat;
}

// On the device and in the type that options say, without gradients.
std::shared_ptr<Transformer> load_transformer(const Translation& options, at::Device device) {
    check_folder(options.folder);
    if (!fs::exists(options.folder / "config.json"))
        throw MissingInput(options.folder.string() + " holds no translation model",
                           "there is no config.json in it",
                           "give the folder of a translation run, its --save-dir");
    const std::shared_ptr<Transformer> model =
        make_transformer(read_transformer_config(options.folder / "config.json"));
    const at::ScalarType type = translating_type(options.common.precision);
    model->to(type);
    load_chosen_model(options.folder, options.checkpoint, *model);
    model->to(device, type);
    log::info("translates with " + chosen_model_name(options.folder, options.checkpoint));
    return model;
}

struct Vocabularies {
    Vocabulary source, target;
};

Vocabularies read_vocabularies(const fs::path& folder, const TransformerConfig& config) {
    const Vocabularies both{Vocabulary::read(folder / "source.vocabulary"),
                            Vocabulary::read(folder / "target.vocabulary")};
    if (both.source.size() != config.source_vocab_size ||
        both.target.size() != config.target_vocab_size)
        throw BadData(folder.string() + ": the vocabularies have " +
                          std::to_string(both.source.size()) + " and " +
                          std::to_string(both.target.size()) + " entries",
                      "config.json says " + std::to_string(config.source_vocab_size) + " and " +
                          std::to_string(config.target_vocab_size),
                      "put the files of one model together");
    return both;
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
                        Translator& translator,
                        const Translation& options,
                        const Vocabularies& vocabularies,
                        at::Device device) {
    TextTranslation text(vocabularies.source, vocabularies.target, options.text);
    LineSource input(STDIN_FILENO, "standard input");
    TranslationWorker own(
        [&](TranslationBatch& batch) { return translated(translator, batch, options.beam); },
        device);
    ProgressLine progress(ProgressLine::Streams::used);
    const std::exception_ptr failure = run_translation(mailbox, own, input, text, [&] {
        progress.show([&](double seconds) { return progress_text(text, input, seconds); });
    });
    if (!is_reader_left(failure))
        report(text, progress.seconds(), options.text);
    return failure;
}

at::Device set_up_rank(const HostComm& world, const Options& options) {
    const Topology topology = discover_devices(world, options);
    const RankInfo& rank = topology.rank(world.rank());
    const std::int64_t asked = agree_on(
        world, [&] { return rank_value("threads", options.threads, topology, world.rank()); });
    warn_of_competing_entries(
        world, "threads", competing_entries(options.threads, topology, world.rank()));
    const ThreadChoice choice =
        choose_threads(rank, topology.ranks_on_host_of(world.rank()), static_cast<int>(asked));
    if (!choice.warning.empty())
        log::warn_here(choice.warning);
    at::set_num_threads(choice.threads);
    return at::Device(rank.device);
}

}  // namespace

int translate_command(const CommandContext& context) {
    const HostComm& world = context.world;
    Translation options = agree_on(world, [&] { return translation_of(context.words); });
    const at::Device device = set_up_rank(world, options.common);
    const std::shared_ptr<Transformer> model =
        agree_on(world, [&] { return load_transformer(options, device); });
    const Vocabularies vocabularies =
        agree_on(world, [&] { return read_vocabularies(options.folder, model->config()); });
    options.text.max_positions = model->config().max_positions;
    Translator translator(*model);
    Mailbox mailbox(world);
    return run_or_end(context.meeting, [&] {
        std::exception_ptr failure;
        if (world.rank() == 0)
            failure = lead(mailbox, translator, options, vocabularies, device);
        else
            serve_translations(mailbox, translator, options.beam);
        agree_on_end(world, failure);
    });
}

}  // namespace hetseq
