#include "hetseq/state/training_state.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/state/step_cost_file.hpp"
#include "hetseq/state/step_cost_json.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;  // written
// For reading. Objects of the ordered kind copy all that they hold, however deeply nested, as they
// grow.
using ReadJson = nlohmann::json;

// JSON has no NaN.
double number_of(const ReadJson& json) {
    return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

std::int64_t count_of(const ReadJson& json) {
    return json_integer(json, 0, std::numeric_limits<std::int64_t>::max());
}

double power_of_two(const ReadJson& json) {
    const double value = json_number(json, 1, 1 << 30);
    if (std::exp2(std::round(std::log2(value))) != value)
        throw BadData("the loss scale " + format_number(value) + " is no power of two");
    return value;
}

Json values_json(const std::vector<Evaluation::Value>& values) {
    Json json = Json::array();
    for (const Evaluation::Value& value : values)
        json.push_back(value.has_weight ? Json::array({value.name, value.value})
                                        : Json::array({value.name}));
    return json;
}

std::vector<Evaluation::Value> values_of(const ReadJson& json) {
    std::vector<Evaluation::Value> values;
    for (const ReadJson& value : json) {
        const bool has_weight = value.size() > 1;
        values.push_back({.name = value.at(0).get<std::string>(),
                          .value = has_weight ? number_of(value.at(1))
                                              : std::numeric_limits<double>::quiet_NaN(),
                          .has_weight = has_weight});
    }
    return values;
}

Json evaluation_json(const std::optional<Evaluation>& evaluation) {
    if (!evaluation)
        return nullptr;
    return {{"losses", values_json(evaluation->losses)},
            {"metrics", values_json(evaluation->metrics)},
            {"samples", evaluation->samples}};
}

std::optional<Evaluation> evaluation_of(const ReadJson& json) {
    if (json.is_null())
        return std::nullopt;
    Evaluation evaluation;
    evaluation.losses = values_of(json.at("losses"));
    evaluation.metrics = values_of(json.at("metrics"));
    evaluation.samples = count_of(json.at("samples"));
    return evaluation;
}

Json window_json(const MetricsWindow& window) {
    Json json{{"updates", window.updates},
              {"finite_updates", window.finite_updates},
              {"samples", window.samples},
              {"units", window.units},
              {"losses", window.losses}};
    if (!window.weightless.empty())
        json["weightless"] = window.weightless;
    return json;
}

MetricsWindow window_of(const ReadJson& json) {
    MetricsWindow window;
    window.updates = count_of(json.at("updates"));
    window.finite_updates = count_of(json.at("finite_updates"));
    window.samples = count_of(json.at("samples"));
    window.units = count_of(json.at("units"));
    for (const ReadJson& loss : json.at("losses"))
        window.losses.push_back(number_of(loss));
    if (json.contains("weightless"))
        for (const ReadJson& updates : json.at("weightless"))
            window.weightless.push_back(count_of(updates));
    if (!window.weightless.empty() && window.weightless.size() != window.losses.size())
        throw BadData("there are " + std::to_string(window.losses.size()) + " losses, and " +
                      std::to_string(window.weightless.size()) + " counts of those without weight");
    return window;
}

Json allocations_json(const AllocationsByUpdate& allocations) {
    Json json = Json::array();
    for (const auto& [first, units] : allocations)
        json.push_back({{"update", first + 1}, {"units", units}});
    return json;
}

AllocationsByUpdate allocations_of(const ReadJson& json) {
    AllocationsByUpdate allocations;
    for (const ReadJson& entry : json) {
        std::vector<std::int64_t> units;
        for (const ReadJson& of_rank : entry.at("units"))
            units.push_back(count_of(of_rank));
        const auto update =
            json_integer(entry.at("update"), 1, std::numeric_limits<std::int64_t>::max());
        if (!allocations.emplace(update - 1, std::move(units)).second)
            throw BadData("two allocations are of update " + std::to_string(update));
    }
    return allocations;
}

Json pending_json(const PendingUpdate& pending) {
    Json json{{"epoch", pending.epoch},
              {"samples", pending.samples},
              {"units", pending.units},
              {"is_full", pending.is_full},
              {"ends_epoch", pending.ends_epoch},
              {"allocation", pending.allocation},
              {"losses", pending.losses},
              {"gradient_norm", pending.gradient_norm},
              {"scale", pending.scale}};
    if (!pending.weightless.empty())
        json["weightless"] = pending.weightless;
    return json;
}

PendingUpdate pending_of(const ReadJson& json) {
    PendingUpdate pending;
    pending.epoch = count_of(json.at("epoch"));
    pending.samples = count_of(json.at("samples"));
    pending.units = count_of(json.at("units"));
    pending.is_full = json.at("is_full").get<bool>();
    pending.ends_epoch = json.at("ends_epoch").get<bool>();
    for (const ReadJson& of_rank : json.at("allocation"))
        pending.allocation.push_back(count_of(of_rank));
    for (const ReadJson& loss : json.at("losses"))
        pending.losses.push_back(number_of(loss));
    if (json.contains("weightless"))
        for (const ReadJson& term : json.at("weightless"))
            pending.weightless.push_back(
                static_cast<std::size_t>(json_integer(term, 0, std::ssize(pending.losses) - 1)));
    pending.gradient_norm = number_of(json.at("gradient_norm"));
    pending.scale = power_of_two(json.at("scale"));
    return pending;
}

Json progress_json(const TrainingProgress& progress) {
    Json json{{"updates", progress.updates},
              {"epochs", progress.epochs},
              {"samples", progress.samples},
              {"units", progress.units},
              {"skipped", progress.skipped},
              {"skips_in_a_row", progress.skips_in_a_row},
              {"reallocations", progress.reallocations},
              {"last_valid", evaluation_json(progress.last_valid)},
              {"last_valid_update", progress.last_valid_update},
              {"best_valid", evaluation_json(progress.best_valid)},
              {"best_update", progress.best_update},
              {"validations_since_best", progress.validations_since_best},
              {"window", window_json(progress.window)},
              {"order_origin", progress.order_origin},
              {"schedule_origin", progress.schedule_origin},
              {"schedule_epochs", progress.schedule_epochs},
              {"allocations", allocations_json(progress.allocations)},
              {"square", progress.item_cost.square},
              {"costs", Json::array()}};
    for (const StepCost& cost : progress.costs)
        json["costs"].push_back(parse_json<Json>(step_cost_json(cost)));
    if (progress.loss_scale)
        json["loss_scale"] = {{"value", progress.loss_scale->value},
                              {"good_updates", progress.loss_scale->good_updates},
                              {"overflows", progress.loss_scale->overflows}};
    for (const PendingUpdate& pending : progress.pending)  // no entry where there is none
        json["pending"].push_back(pending_json(pending));
    return json;
}

LossScale::State loss_scale_of(const ReadJson& json) {
    return {power_of_two(json.at("value")),
            count_of(json.at("good_updates")),
            count_of(json.at("overflows"))};
}

TrainingProgress progress_of(const ReadJson& json) {
    TrainingProgress progress;
    progress.updates = count_of(json.at("updates"));
    progress.epochs = count_of(json.at("epochs"));
    progress.samples = count_of(json.at("samples"));
    progress.units = count_of(json.at("units"));
    progress.skipped = count_of(json.at("skipped"));
    progress.skips_in_a_row = count_of(json.at("skips_in_a_row"));
    progress.reallocations = count_of(json.at("reallocations"));
    progress.last_valid = evaluation_of(json.at("last_valid"));
    progress.last_valid_update = json.contains("last_valid_update")  // earlier versions had none
                                     ? count_of(json.at("last_valid_update"))
                                     : progress.updates;
    progress.best_valid = evaluation_of(json.at("best_valid"));
    progress.best_update = count_of(json.at("best_update"));
    progress.validations_since_best = count_of(json.at("validations_since_best"));
    progress.window = window_of(json.at("window"));
    progress.order_origin = count_of(json.at("order_origin"));
    progress.schedule_origin = count_of(json.at("schedule_origin"));
    // In a checkpoint without them, the schedule counted the epochs of the data's order.
    progress.schedule_epochs =
        json.contains("schedule_epochs") ? count_of(json.at("schedule_epochs")) : progress.epochs;
    progress.allocations = allocations_of(json.at("allocations"));
    if (json.contains("square"))
        progress.item_cost.square = json_number(json.at("square"), 0, 1e6);
    for (const ReadJson& cost : json.at("costs"))
        progress.costs.push_back(step_cost_from_json(cost));
    if (json.contains("loss_scale"))
        progress.loss_scale = loss_scale_of(json.at("loss_scale"));
    if (json.contains("pending"))
        for (const ReadJson& pending : json.at("pending"))
            progress.pending.push_back(pending_of(pending));
    return progress;
}

Json identity_json(const std::optional<CorpusIdentity>& identity) {
    if (!identity)
        return nullptr;
    Json shards = Json::array();
    for (const CorpusIdentity::Shard& shard : identity->shards) {
        shards.push_back(
            {{"name", shard.name}, {"bytes", shard.bytes}, {"samples", shard.samples}});
        if (shard.rows.empty())
            continue;
        shards.back()["rows"] = shard.rows;
        shards.back()["xxh64"] = shard.checksum;
    }
    return {{"datasets", identity->datasets}, {"shards", std::move(shards)}};
}

CorpusIdentity::Shard shard_of(const ReadJson& json) {
    CorpusIdentity::Shard shard{json.at("name").get<std::string>(),
                                count_of(json.at("bytes")),
                                count_of(json.at("samples"))};
    if (!json.contains("rows"))
        return shard;
    for (const ReadJson& row : json.at("rows"))
        shard.rows.push_back(count_of(row));
    shard.checksum = json.at("xxh64").get<std::string>();
    return shard;
}

// A checkpoint of version 0.1 has none.
std::optional<CorpusIdentity> identity_of(const ReadJson& run, const char* name) {
    if (!run.contains(name) || run.at(name).is_null())
        return std::nullopt;
    CorpusIdentity identity;
    identity.datasets = run.at(name).at("datasets").get<std::vector<std::string>>();
    for (const ReadJson& shard : run.at(name).at("shards"))
        identity.shards.push_back(shard_of(shard));
    return identity;
}

Json run_json(const RunIdentity& run) {
    Json json{{"options", run.options},
              {"schedule_updates", run.schedule_updates},
              {"samples", run.samples},
              {"corpus", run.corpus},
              {"data", identity_json(run.data)},
              {"valid_data", identity_json(run.valid_data)},
              {"devices", run.devices},
              {"limits", run.limits}};
    if (run.layout)
        json["layout"] = {{"question", run.layout->question},
                          {"choice", parse_json<Json>(run.layout->choice)}};
    return json;
}

RunIdentity run_of(const ReadJson& json) {
    RunIdentity run;
    run.options = json.at("options").get<std::map<std::string, std::string>>();
    run.schedule_updates = count_of(json.at("schedule_updates"));
    run.samples = count_of(json.at("samples"));
    run.corpus = json.at("corpus").get<std::string>();
    run.data = identity_of(json, "data");
    run.valid_data = identity_of(json, "valid_data");
    run.devices = json.at("devices").get<std::vector<std::string>>();
    if (json.contains("limits"))  // a checkpoint without is continued with speeds measured anew
        run.limits = json.at("limits").get<std::vector<std::string>>();
    if (json.contains("layout"))
        run.layout = {.question = json.at("layout").at("question").get<std::string>(),
                      .choice = json_text(json.at("layout").at("choice"))};
    return run;
}

// Throws the library's exceptions and BadData.
TrainingState state_of(const ReadJson& json) {
    const std::int64_t format = json_integer(json.at("format"), 0, 1'000'000);
    if (format != TrainingState::format)
        throw BadData("its format is " + std::to_string(format) + ", this program reads " +
                      std::to_string(TrainingState::format));
    return {run_of(json.at("run")), progress_of(json.at("progress"))};
}

}  // namespace

std::string training_state_json(const TrainingState& state) {
    return json_text(Json{{"format", TrainingState::format},
                          {"progress", progress_json(state.progress)},
                          {"run", run_json(state.run)}},
                     1) +
           "\n";
}

TrainingState parse_training_state(const std::string& text, const std::filesystem::path& path) {
    try {
        return state_of(parse_json<ReadJson>(text));
    } catch (const std::exception& error) {
        throw BadData(path.string() + " is not a training state", error.what());
    }
}

TrainingState read_training_state(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / TrainingState::file_name;
    const std::optional<std::string> text = read_file_text(path);
    if (!text)
        throw MissingInput("cannot read " + path.string(), "its folder is not complete");
    return parse_training_state(*text, path);
}

}  // namespace hetseq
