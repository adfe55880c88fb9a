#include "predict_text.hpp"

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/text_lines.hpp"
#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/app/failure.hpp"

#include "app/commands/model_choice.hpp"
#include "app/lines/line_dispatcher.hpp"
#include "app/lines/progress_line.hpp"
#include "app/prediction/text_classifying.hpp"
#include "app/prediction/text_tagging.hpp"
#include "predicting_run.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

constexpr const char* tagger = "bert-token-classifier";
constexpr const char* classifier = "bert-sequence-classifier";

// The run's options, without the data that it was trained on: what they say of themselves stands
// beside its model.
GivenOptions text_settings(const PredictingRun& run,
                           const OptionValues& given,
                           const Parts& parts) {
    GivenOptions result = options_of_predicting_run(run, given, parts, RunData::none);
    const std::string model = typed_options(result.file).model;
    if (model != tagger && model != classifier)
        throw BadConfig(
            run.folder.string() + " is no run whose model takes lines of text",
            "such a run is one of --task token-classification or --task sequence-classification",
            "name data by --data and a file by --output");
    return result;
}

BasicTokenizerOptions tokenizer_of(const fs::path& run) {
    const fs::path path = run / bert_tokenizer_name;
    const std::optional<std::string> text = read_file_text(path);
    if (!text)
        throw MissingInput("there is no " + path.string(), "", "name the folder of a whole run");
    return parse_tokenizer_config(*text, path.string());
}

/// A model with the way to its input.
struct LineModel {
    std::shared_ptr<Model> model;
    std::unique_ptr<Collator> collator;
    at::Device device;

    std::vector<Prediction> predict(const TensorDict& rows, std::int64_t count) const {
        const at::NoGradGuard no_grad;
        MicroBatch input = collator->collate(rows, at::arange(count, at::kLong));
        for (auto& [name, tensor] : input.tensors)
            tensor = tensor.to(device);
        return model->predict(input);
    }
};

template <class Job>
AnsweredBatch answer(const LineModel& model, const TextBatch& batch) {
    const auto predictions = model.predict(Job::fields_of(batch), std::ssize(batch.rows));
    return {batch.number, Job::answers_of(batch, predictions)};
}

std::int64_t positions_of(const Model& model) {
    for (const NamedTensor& stored : model.stored_tensors())
        if (stored.name == "bert.embeddings.position_embeddings.weight")
            return stored.tensor.size(0);
    throw InternalError("a BERT without positions");
}

template <class Job>
void serve_answers(Mailbox& mailbox, const LineModel& model) {
    for (;;) {
        const Mailbox::Message message = mailbox.wait();
        if (message.bytes.empty())
            return;
        mailbox.send(message.from,
                     to_bytes(answer<Job>(model, text_batch_from_bytes(message.bytes))));
    }
}

std::string progress_text(std::int64_t lines, double seconds) {
    return count_text(lines, "line") + "  " + format_number(static_cast<double>(lines) / seconds) +
           " lines/s";
}

template <class Job>
void report(const Job& text, double seconds) {
    if (text.cut_lines() > 0)
        log::warn(count_text(text.cut_lines(), "line") +
                  " had more pieces than the model has positions (the first is line " +
                  std::to_string(text.first_cut_line()) + "); " + Job::what_is_cut);
    log::info("labelled " + count_text(text.lines(), "line") + ", " + text.size_text() + ", in " +
              format_number(seconds, 4) + " s");
}

// Returns an error of the input; the other ranks know the end then, as without one.
template <class Job>
std::exception_ptr lead(Mailbox& mailbox, const LineModel& model, Job& text) {
    LineSource input(STDIN_FILENO, "standard input");
    typename LineDispatcher<Job>::Worker own(
        [&](TextBatch& batch) { return answer<Job>(model, batch); }, model.device);
    ProgressLine progress(ProgressLine::Streams::used);
    const std::exception_ptr failure = LineDispatcher<Job>(mailbox, own, input, text).run([&] {
        progress.show([&](double seconds) { return progress_text(text.written(), seconds); });
    });
    if (!is_reader_left(failure))
        report(text, progress.seconds());
    return failure;
}

// `Encoder`: makes rows of lines for the job.
template <class Job, class Encoder>
int label_lines(const CommandContext& context, const PredictingRun& run, const LineModel& model) {
    const HostComm& world = context.world;
    const Encoder encoder = agree_on(world, [&] {
        return Encoder{WordPiece::read(run.folder / bert_vocabulary_name),
                       tokenizer_of(run.folder),
                       positions_of(*model.model)};
    });
    const LabellingOptions options = agree_on(world, [&] {
        return LabellingOptions{.labels = read_text_lines((run.folder / labels_name).string()),
                                .caps = {.sentences = run.batch_samples},
                                .window = 32 * run.batch_samples};
    });
    Mailbox mailbox(world);
    return run_or_end(context.meeting, [&] {
        std::exception_ptr failure;
        if (world.rank() == 0) {
            Job text(encoder, options);
            failure = lead(mailbox, model, text);
        } else {
            serve_answers<Job>(mailbox, model);
        }
        agree_on_end(world, failure);
    });
}

}  // namespace

int predict_text(const CommandContext& context) {
    const HostComm& world = context.world;
    const PredictingRun run = agree_on(world, [&] { return predicting_run(context.words); });
    const GivenOptions given =
        agree_on(world, [&] { return text_settings(run, context.words.options, context.parts); });
    const RunSettings settings =
        set_up_ranks(world, settle_options(world, given, context.parts), context.parts);
    const LineModel model = agree_on(world, [&] {
        return LineModel{
            load_predicting_model(run, settings, context.parts),
            context.parts.batchings.get(settings.options().batching)(settings.options().parts),
            settings.device};
    });
    return settings.options().model == tagger
               ? label_lines<TextTagging, WordEncoder>(context, run, model)
               : label_lines<TextClassifying, SequenceEncoder>(context, run, model);
}

}  // namespace hetseq
