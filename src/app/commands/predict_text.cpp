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

#include "hetseq/util/error.hpp"
#include "hetseq/util/file_text.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

#include "app/line_dispatcher.hpp"
#include "app/prediction/text_tagging.hpp"
#include "app/progress_line.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "model_choice.hpp"
#include "predicting_run.hpp"

#include "hetseq/text/text_lines.hpp"
#include "hetseq/text/tokenizer_config.hpp"
#include "hetseq/data/prepare_bert.hpp"
#include "hetseq/data/prepare_tagged.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/app/failure.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

// The run's options, without the data that it was trained on: what they say of themselves stands
// beside its model.
GivenOptions text_settings(const PredictingRun& run,
                           const OptionValues& given,
                           const Parts& parts) {
    GivenOptions result = options_of_predicting_run(run, given, parts);
    for (const char* of_data : {"data", "valid-data"})
        result.file.erase(of_data);
    const auto model = result.file.find("model");
    if (model == result.file.end() || model->second != "bert-token-classifier")
        throw BadConfig(run.folder.string() + " is no run whose model takes lines of text",
                        "such a run is one of --task token-classification",
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
struct Tagger {
    std::shared_ptr<Model> model;
    std::unique_ptr<Collator> collator;
    at::Device device;

    AnsweredBatch answer(const TextBatch& batch) const {
        const at::NoGradGuard no_grad;
        const auto count = static_cast<std::int64_t>(batch.rows.size());
        MicroBatch input =
            collator->collate(rows_of_corpus(batch, "words"), at::arange(count, at::kLong));
        for (auto& [name, tensor] : input.tensors)
            tensor = tensor.to(device);
        const at::Tensor labels =
            model->predict(input).front().values.to(at::kCPU, at::kInt).contiguous();
        AnsweredBatch answered{batch.number, {}};
        const auto* label = labels.const_data_ptr<std::int32_t>();
        for (const TextRow& row : batch.rows) {
            answered.answers.push_back({{label, label + row.marks.size()}});
            label += row.marks.size();
        }
        return answered;
    }
};

std::int64_t positions_of(const Model& model) {
    for (const NamedTensor& stored : model.stored_tensors())
        if (stored.name == "bert.embeddings.position_embeddings.weight")
            return stored.tensor.size(0);
    throw InternalError("a BERT without positions");
}

void serve_answers(Mailbox& mailbox, const Tagger& tagger) {
    for (;;) {
        const Mailbox::Message message = mailbox.wait();
        if (message.bytes.empty())
            return;
        mailbox.send(message.from, to_bytes(tagger.answer(text_batch_from_bytes(message.bytes))));
    }
}

std::string progress_text(const TextTagging& text, double seconds) {
    return count_text(text.written(), "line") + "  " +
           format_number(static_cast<double>(text.written()) / seconds) + " lines/s";
}

void report(const TextTagging& text, double seconds) {
    if (text.cut_lines() > 0)
        log::warn(count_text(text.cut_lines(), "line") +
                  " had more pieces than the model has positions (the first is line " +
                  std::to_string(text.first_cut_line()) +
                  "); the words that did not fit have the label ?");
    log::info("labelled " + count_text(text.lines(), "line") + ", " +
              count_text(text.words(), "word") + ", in " + format_number(seconds, 4) + " s");
}

// Returns an error of the input; the other ranks know the end then, as without one.
std::exception_ptr lead(Mailbox& mailbox,
                        const Tagger& tagger,
                        WordEncoder encoder,
                        const TaggingOptions& options) {
    TextTagging text(std::move(encoder), options);
    LineSource input(STDIN_FILENO, "standard input");
    LineDispatcher<TextTagging>::Worker own([&](TextBatch& batch) { return tagger.answer(batch); },
                                            tagger.device);
    ProgressLine progress(ProgressLine::Streams::used);
    const std::exception_ptr failure =
        LineDispatcher<TextTagging>(mailbox, own, input, text).run([&] {
            progress.show([&](double seconds) { return progress_text(text, seconds); });
        });
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
    const Tagger tagger = agree_on(world, [&] {
        return Tagger{
            load_predicting_model(run, settings, context.parts),
            context.parts.batchings.get(settings.options().batching)(settings.options().parts),
            settings.device};
    });
    const WordEncoder encoder = agree_on(world, [&] {
        return WordEncoder{WordPiece::read(run.folder / bert_vocabulary_name),
                           tokenizer_of(run.folder),
                           positions_of(*tagger.model)};
    });
    const TaggingOptions options = agree_on(world, [&] {
        return TaggingOptions{.labels = read_text_lines((run.folder / labels_name).string()),
                              .caps = {.sentences = run.batch_samples},
                              .window = 32 * run.batch_samples};
    });
    Mailbox mailbox(world);
    return run_or_end(context.meeting, [&] {
        std::exception_ptr failure;
        if (world.rank() == 0)
            failure = lead(mailbox, tagger, encoder, options);
        else
            serve_answers(mailbox, tagger);
        agree(world, failure);
    });
}

}  // namespace hetseq
