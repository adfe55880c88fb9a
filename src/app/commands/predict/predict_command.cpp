#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/files/shard_header.hpp"
#include "hetseq/data/loading/batch_reader.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"

#include "app/commands/command_options.hpp"
#include "app/commands/model_choice.hpp"
#include "app/lines/progress_line.hpp"
#include "app/prediction/prediction_ranks.hpp"
#include "hetseq/version.hpp"
#include "predict_text.hpp"
#include "predicting_run.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A command whose predictions go into a file.
struct FilePrediction {
    PredictingRun run;
    fs::path output;
    bool overwrites = false;
};

FilePrediction file_prediction(const CommandWords& words) {
    const PredictOptions options = words.read(predict_options());
    if (options.output.empty())
        throw BadConfig("--data is given without --output",
                        "the predictions of data are written to a file",
                        "name it");
    return {
        .run = predicting_run(words), .output = options.output, .overwrites = options.overwrites};
}

// The run's options, but for --data, which are other data than it was trained on.
GivenOptions settings_of(const FilePrediction& options,
                         const OptionValues& given,
                         const Parts& parts) {
    if (typed_options(given).data.empty())
        throw BadConfig("there are no data to predict from", "--data is missing", "name them");
    return options_of_predicting_run(options.run, given, parts);
}

void move_to(at::Device device, MicroBatch& batch) {
    for (auto& [name, tensor] : batch.tensors)
        tensor = tensor.to(device);
    batch.sample_ids = batch.sample_ids.to(device);
}

PredictedBatch predicted(Model& model, at::Device device, BatchToPredict& task) {
    const at::NoGradGuard no_grad;
    const double begin_s = monotonic_seconds();
    PredictedBatch result{.begin = task.batch.sample_ids[0].item<std::int64_t>(),
                          .samples = task.batch.samples,
                          .predictions = {}};
    move_to(device, task.batch);
    for (Prediction& prediction : run_predict(model, task.batch)) {
        for (at::Tensor* tensor : {&prediction.values, &prediction.row_lengths})
            if (tensor->defined())
                *tensor = tensor->to(at::kCPU);
        result.predictions.push_back(std::move(prediction));
    }
    result.seconds = task.read_s + monotonic_seconds() - begin_s;
    result.ends_block = task.ends_block;
    return result;
}

std::string progress_text(std::int64_t done, std::int64_t all, double seconds) {
    const double share = static_cast<double>(done) / static_cast<double>(all);
    std::string text = percent_text(share, 3) + " of " + count_text(all, "sample") + "  " +
                       format_number(static_cast<double>(done) / seconds) + " samples/s";
    return share > 0 ? text + "  ETA " + format_duration(seconds / share * (1 - share)) : text;
}

/// What rank 0 tells at the end.
struct PredictionSummary {
    std::string model;     // its file; several, whose mean was taken, with a comma between them
    std::string checksum;  // of that file; empty for a mean
    std::string data;
    std::string precision;  // a word, or a list by rank
    fs::path output;
    std::int64_t bytes = 0;
    std::vector<PredictionFile::Dataset> datasets;
    std::vector<std::int64_t> samples;  // by rank
    double seconds = 0;

    std::int64_t all_samples() const {
        std::int64_t sum = 0;
        for (const std::int64_t own : samples)
            sum += own;
        return sum;
    }
};

PredictionSummary begin_summary(const FilePrediction& options, const RunSettings& settings) {
    PredictionSummary summary;
    summary.data = settings.options().data;
    summary.output = options.output;
    summary.precision = settings.options().precision.text();
    const std::vector<fs::path> files =
        chosen_model_files(options.run.folder, options.run.checkpoint);
    for (const fs::path& file : files)
        summary.model += (summary.model.empty() ? "" : ", ") + file.string();
    if (files.size() == 1)
        summary.checksum = checksum_text(digest_of(files.front()).xxh64);
    return summary;
}

void describe(PredictionFile& file,
              const FilePrediction& options,
              const PredictionSummary& summary) {
    file.set_attribute("program", std::string("hetseq ") + version::number);
    file.set_attribute("run", options.run.folder.string());
    file.set_attribute("model", summary.model);
    if (!summary.checksum.empty())
        file.set_attribute("model_xxh64", summary.checksum);
    file.set_attribute("data", summary.data);
    file.set_attribute("batch_size", options.run.batch_samples);
    file.set_attribute("precision", summary.precision);
}

std::string as_json(const PredictionSummary& summary) {
    Json json{{"model", summary.model},
              {"model_xxh64", summary.checksum},
              {"data", summary.data},
              {"output", summary.output.string()},
              {"bytes", summary.bytes},
              {"datasets", Json::array()}};
    for (const PredictionFile::Dataset& dataset : summary.datasets)
        json["datasets"].push_back(
            {{"name", dataset.name}, {"type", dataset.type}, {"row_shape", dataset.row_shape}});
    json["samples"] = summary.all_samples();
    json["samples_by_rank"] = summary.samples;
    json["seconds"] = summary.seconds;
    return json_text(json, 2) + "\n";
}

std::string as_text(const PredictionSummary& summary) {
    std::vector<std::vector<std::string>> rows{
        {"model", summary.model}, {"data", summary.data}, {"output", summary.output.string()}};
    for (const PredictionFile::Dataset& dataset : summary.datasets)
        rows.push_back(
            {"  " + dataset.name, dataset.type + ", rows of " + row_shape_text(dataset.row_shape)});
    rows.push_back({"samples", std::to_string(summary.all_samples())});
    std::string by_rank;
    for (const std::int64_t own : summary.samples)
        by_rank += (by_rank.empty() ? "" : ", ") + std::to_string(own);
    rows.push_back({"  by rank", by_rank});
    rows.push_back({"seconds", format_number(summary.seconds, 3)});
    return format_table(rows);
}

// What each rank needs to predict its blocks.
struct Predicting {
    BatchReader reader;
    std::shared_ptr<const Collator> collator;
    std::shared_ptr<Model> model;
    at::Device device;

    ReadBlock read() {
        return [this](std::int64_t block) { return reader.read(block, *collator); };
    }
    Predict predict() {
        return [this](BatchToPredict& batch) { return predicted(*model, device, batch); };
    }
};

// Collective.
Predicting load_predicting(const CommandContext& context,
                           const FilePrediction& options,
                           const RunSettings& settings) {
    const HostComm& world = context.world;
    const std::shared_ptr<Model> model = agree_on(
        world, [&] { return load_predicting_model(options.run, settings, context.parts); });
    const std::string data =
        locate(world, required_data(settings.options()), settings.schema).files;
    return {.reader = BatchReader(world,
                                  data,
                                  without_missing_targets(world, data, settings.schema),
                                  options.run.batch_samples),
            .collator =
                context.parts.batchings.get(settings.options().batching)(settings.options().parts),
            .model = model,
            .device = settings.device};
}

// Rank 0's part of the work, after which the file is complete, and what is told of it.
PredictionSummary predict_on_first(const HostComm& world,
                                   Predicting& predicting,
                                   PredictionFile& file,
                                   PredictionSummary summary) {
    Mailbox mailbox(world);
    ProgressLine line(ProgressLine::Streams::free);
    const std::int64_t samples = predicting.reader.samples();
    const auto show = [&](std::int64_t done) {
        line.show([&](double seconds) { return progress_text(done, samples, seconds); });
    };
    PredictionOutcome outcome;
    {
        PredictionWorker own(predicting.predict(), predicting.device);
        outcome = run_predictions({.mailbox = mailbox,
                                   .own = own,
                                   .read = predicting.read(),
                                   .blocks = predicting.reader.blocks(),
                                   .samples = samples,
                                   .progress = show},
                                  file);
    }
    summary.seconds = line.seconds();
    summary.samples = outcome.samples;
    summary.datasets = file.datasets();
    agree(world, outcome.failure);
    agree_on(world, [&] { summary.bytes = file.commit(); });
    return summary;
}

// The other ranks' part of it.
void predict_for_first(const HostComm& world, Predicting& predicting) {
    Mailbox mailbox(world);
    agree(world, serve_predictions(mailbox, predicting.read(), predicting.predict()));
    agree_on(world, [] {});  // the file is complete
}

int predict_into_file(const CommandContext& context) {
    const HostComm& world = context.world;
    const bool is_first = world.rank() == 0;
    const FilePrediction options = agree_on(world, [&] { return file_prediction(context.words); });
    const GivenOptions given = agree_on(world, [&] {
        if (is_first)
            check_output_file(options.output, options.overwrites);
        return settings_of(options, context.words.options, context.parts);
    });
    const RunSettings settings =
        set_up_ranks(world, settle_options(world, given, context.parts), context.parts);
    Predicting predicting = load_predicting(context, options, settings);
    // The file is begun before there is work to lose.
    std::optional<PredictionFile> file;
    PredictionSummary summary;
    agree_on(world, [&] {
        if (!is_first)
            return;
        summary = begin_summary(options, settings);
        file.emplace(options.output, predicting.reader.samples());
        describe(*file, options, summary);
    });
    return run_or_end(context.meeting, [&] {
        if (!is_first)
            return predict_for_first(world, predicting);
        summary = predict_on_first(world, predicting, *file, std::move(summary));
        std::fputs((settings.options().json ? as_json(summary) : as_text(summary)).c_str(), stdout);
    });
}

}  // namespace

// Without data and a file for what is said of them, it is the text on standard input.
int predict_command(const CommandContext& context) {
    const bool takes_lines = agree_on(context.world, [&] {
        return typed_options(context.words.options).data.empty() &&
               context.words.read(predict_options()).output.empty();
    });
    return takes_lines ? predict_text(context) : predict_into_file(context);
}

}  // namespace hetseq
