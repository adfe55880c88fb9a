#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/status_line.hpp"
#include "hetseq/util/text.hpp"

#include "app/translation/translation_ranks.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/vocabulary.hpp"
#include "hetseq/model/decoding/translator.hpp"
#include "hetseq/model/model_file.hpp"
#include "hetseq/model/transformer.hpp"
#include "hetseq/train/record/progress_bar.hpp"
#include "hetseq/session/options.hpp"
#include "hetseq/session/rank_list.hpp"
#include "hetseq/session/threads.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/commands/checkpoint_report.hpp"
#include "hetseq/app/failure.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most = 1'000'000;  // of whatever is counted here

struct TranslateOptions {
    fs::path folder;
    std::string checkpoint;
    BeamOptions beam;
    TextOptions text;
    Options common;  // device, threads, precision
};

BeamOptions beam_options(const CommandWords& words) {
    BeamOptions beam;
    beam.beam = words.whole_number("beam", 1, 1000);
    beam.hypotheses = words.whole_number("nbest", 1, 1000);
    beam.length_penalty = words.number("length-penalty", -100, 100);
    beam.length_factor = words.number("max-len-a", 0, 1000);
    beam.length_constant = words.whole_number("max-len-b", 0, most);
    beam.min_length = words.whole_number("min-len", 0, most);
    beam.unknown_penalty = words.number("unk-penalty", -1000, 1000);
    check(beam);
    return beam;
}

TranslateOptions translate_options(const CommandWords& words) {
    TranslateOptions options;
    options.folder = words.arguments.front();
    options.checkpoint = words.text("checkpoint");
    options.beam = beam_options(words);
    options.text.hypotheses = options.beam.hypotheses;
    options.text.print_scores = words.has("print-scores");
    options.text.caps.sentences = words.whole_number("batch-sentences", 1, most);
    options.text.caps.tokens = words.whole_number("batch-source-tokens", 1, most);
    options.text.window = 32 * options.text.caps.sentences;
    options.common = typed_options(words.options);
    return options;
}

// The first checkpoint tells whether they fit the model.
void load_mean(const std::vector<fs::path>& checkpoints, Model& model) {
    load_model(model_file(checkpoints.front().string()), model);
    std::map<std::string, at::Tensor> means;
    for (const NamedTensor& mean : mean_parameters(checkpoints))
        means.emplace(mean.name, mean.tensor);
    const at::NoGradGuard no_grad;
    for (const NamedTensor& stored : model.stored_tensors())
        stored.tensor.copy_(means.at(stored.name));
}

// Reads the parameters that --checkpoint chooses.
void load_chosen(const TranslateOptions& options, Model& model) {
    const std::string& choice = options.checkpoint;
    const std::string average = "average:";
    if (choice.empty()) {
        load_model(model_file(options.folder.string()), model);
    } else if (choice == "best") {
        load_model(options.folder / "best.safetensors", model);
    } else if (choice == "last") {
        load_model(model_file(checkpoints_of(options.folder).front().string()), model);
    } else if (choice.rfind(average, 0) == 0) {
        const std::int64_t count =
            option_value::whole_number(choice.substr(average.size()), 1, most);
        std::vector<fs::path> checkpoints = checkpoints_of(options.folder);
        if (static_cast<std::int64_t>(checkpoints.size()) < count)
            throw MissingInput(options.folder.string() + " holds " +
                                   std::to_string(checkpoints.size()) + " checkpoints",
                               "--checkpoint " + choice,
                               "ask for fewer, or train with a larger --keep-last");
        checkpoints.resize(static_cast<std::size_t>(count));
        load_mean(checkpoints, model);
    } else {
        load_model(model_file(choice), model);
    }
}

// On the device and in the type that options say, without gradients.
std::shared_ptr<Transformer> load_transformer(const TranslateOptions& options, at::Device device) {
    const std::shared_ptr<Transformer> model =
        make_transformer(read_transformer_config(options.folder / "config.json"));
    if (options.common.precision == "fp64")
        model->to(at::kDouble);
    load_chosen(options, *model);
    model->to(device);
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

/// The line on the terminal: how much is done, the rate and the time that is left.
class TranslationProgress {
public:
    TranslationProgress(const TextTranslation& text, const LineSource& input)
        : text_{text},
          input_{input},
          columns_{::isatty(STDOUT_FILENO) == 1 || ::isatty(STDIN_FILENO) == 1
                       ? 0
                       : columns_of_terminal()} {}
    ~TranslationProgress() {
        if (columns_ > 0)
            status_line::erase();
    }

    void show() {
        const double now_s = monotonic_seconds();
        if (columns_ == 0 || now_s - drawn_s_ < 0.2)
            return;
        drawn_s_ = now_s;
        status_line::show(line(now_s - begin_s_).substr(0, static_cast<std::size_t>(columns_ - 1)));
    }

    double seconds() const { return monotonic_seconds() - begin_s_; }

private:
    // How much there is to do is known when all was read.
    std::string line(double seconds) const {
        const double done = text_.share_done();
        std::string result = count_text(text_.lines(), "line") + "  " +
                             format_number(static_cast<double>(text_.tokens()) / seconds) +
                             " tokens/s";
        if (input_.at_end() && done > 0)
            result = percent_text(done, 3) + " of " + result + "  ETA " +
                     format_duration(seconds / done * (1 - done));
        return result;
    }

    const TextTranslation& text_;
    const LineSource& input_;
    int columns_;
    double begin_s_ = monotonic_seconds();
    double drawn_s_ = 0;
};

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
                        const TranslateOptions& options,
                        const Vocabularies& vocabularies,
                        at::Device device) {
    TextTranslation text(vocabularies.source, vocabularies.target, options.text);
    LineSource input(STDIN_FILENO, "standard input");
    OwnWorker own(translator, options.beam, device);
    TranslationProgress progress(text, input);
    const std::exception_ptr failure =
        run_translation(mailbox, own, input, text, [&] { progress.show(); });
    report(text, progress.seconds(), options.text);
    return failure;
}

at::Device set_up_rank(const HostComm& world, const Options& options) {
    const Topology topology = discover_topology(world, options.device);
    const RankInfo& rank = topology.rank(world.rank());
    const std::int64_t asked = agree_on(
        world, [&] { return rank_value("threads", options.threads, topology, world.rank()); });
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
    TranslateOptions options = agree_on(world, [&] { return translate_options(context.words); });
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
        agree(world, failure);
    });
}

}  // namespace hetseq
