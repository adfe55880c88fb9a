#include "predict_text.hpp"

#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/app/failure.hpp"

#include "app/commands/model_choice.hpp"
#include "app/lines/line_dispatcher.hpp"
#include "app/lines/progress_line.hpp"
#include "app/prediction/line_batches.hpp"
#include "predicting_run.hpp"

namespace hetseq {

namespace {

// The run's options, without the data that it was trained on: what they say of themselves stands
// beside its model.
GivenOptions text_settings(const PredictingRun& run,
                           const OptionValues& given,
                           const Parts& parts) {
    GivenOptions result = options_of_predicting_run(run, given, parts, RunData::none);
    if (!parts.lines.has(typed_options(result.file).model))
        throw BadConfig(run.folder.string() + " is no run whose model takes lines of text",
                        parts.lines.names().empty()
                            ? "a task in Python takes data"
                            : "such a run is one of --model " + join(parts.lines.names(), " or "),
                        "name data by --data and a file by --output");
    return result;
}

/// A model with the way to its input and back.
struct LineModel {
    std::shared_ptr<Model> model;
    std::unique_ptr<Collator> collator;
    std::unique_ptr<LineAnswering> answering;
    at::Device device;

    std::vector<Prediction> predict(const TensorDict& rows, std::int64_t count) const {
        const at::NoGradGuard no_grad;
        MicroBatch input =
            collated(*collator, rows, at::arange(count, at::kLong), {.predicts = true});
        for (auto& [name, tensor] : input.tensors)
            tensor = tensor.to(device);
        return run_predict(*model, input);
    }
};

AnsweredBatch answer(const LineModel& model, const LineBatch& batch) {
    const TensorDict fields = model.answering->fields_of(batch.rows);
    return {batch.number,
            model.answering->answers_of(batch.rows, model.predict(fields, std::ssize(batch.rows)))};
}

void serve_answers(Mailbox& mailbox, const LineModel& model) {
    for (;;) {
        const Mailbox::Message message = mailbox.wait();
        if (message.bytes.empty())
            return;
        mailbox.send(message.from, to_bytes(answer(model, line_batch_from_bytes(message.bytes))));
    }
}

std::string progress_text(std::int64_t lines, double seconds) {
    return count_text(lines, "line") + "  " + format_number(static_cast<double>(lines) / seconds) +
           " lines/s";
}

void report(const AnsweredLines& text, double seconds) {
    if (text.cut_lines() > 0)
        log::warn(count_text(text.cut_lines(), "line") +
                  " had more pieces than the model has positions (the first is line " +
                  std::to_string(text.first_cut_line()) + "); " + text.note_on_cut());
    log::info("labelled " + count_text(text.lines(), "line") + ", " + text.size_text() + ", in " +
              format_number(seconds, 4) + " s");
}

// Returns an error of the input; the other ranks know the end then, as without one.
std::exception_ptr lead(Mailbox& mailbox, const LineModel& model, AnsweredLines& text) {
    LineSource input(STDIN_FILENO, "standard input");
    LineDispatcher<AnsweredLines>::Worker own(
        [&](LineBatch& batch) { return answer(model, batch); }, model.device);
    ProgressLine progress(ProgressLine::Streams::used);
    const std::exception_ptr failure =
        LineDispatcher<AnsweredLines>(mailbox, own, input, text).run([&] {
            progress.show([&](double seconds) { return progress_text(text.written(), seconds); });
        });
    if (!is_reader_left(failure))
        report(text, progress.seconds());
    return failure;
}

}  // namespace

int predict_text(const CommandContext& context) {
    const HostComm& world = context.world;
    const PredictingRun run = agree_on(world, [&] { return predicting_run(context.words); });
    const GivenOptions given =
        agree_on(world, [&] { return text_settings(run, context.words.options, context.parts); });
    const RunSettings settings =
        set_up_ranks(world, settle_options(world, given, context.parts), context.parts);
    const Options& options = settings.options();
    const LineModel model = agree_on(world, [&] {
        return LineModel{load_predicting_model(run, settings, context.parts),
                         context.parts.batchings.get(options.batching)(options.parts),
                         context.parts.lines.get(options.model)(run.folder, options.parts),
                         settings.device};
    });
    Mailbox mailbox(world);
    return run_or_end(context.meeting, [&] {
        std::exception_ptr failure;
        if (world.rank() == 0) {
            AnsweredLines text(*model.answering,
                               {.sentences = run.batch_samples,
                                .tokens = std::numeric_limits<std::int64_t>::max()},
                               32 * run.batch_samples);
            failure = lead(mailbox, model, text);
        } else {
            serve_answers(mailbox, model);
        }
        agree_on_end(world, failure);
    });
}

}  // namespace hetseq
