#include "python_task.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/data/files/shard_header.hpp"

#include "python_calls.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::json;

ElementType element_type(const std::string& name) {
    static const std::map<std::string, ElementType> types{{"uint8", ElementType::uint8},
                                                          {"int8", ElementType::int8},
                                                          {"int32", ElementType::int32},
                                                          {"int64", ElementType::int64},
                                                          {"float16", ElementType::float16},
                                                          {"float32", ElementType::float32},
                                                          {"float64", ElementType::float64},
                                                          {"bool", ElementType::boolean}};
    const auto found = types.find(name);
    if (found == types.end())
        throw BadConfig("a field cannot have the type torch." + name,
                        "",
                        "use uint8, int8, int32, int64, float16, float32, float64 or bool");
    return found->second;
}

std::optional<double> bound(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional<double>{json.get<double>()};
}

std::int64_t fixed_values(const std::vector<std::int64_t>& shape) {
    std::int64_t values = 1;
    for (const std::int64_t length : shape)
        values *= length < 0 ? 1 : length;
    return values;
}

void set_ragged(FieldSchema& field, const Json& json) {
    field.sets_lengths = !json.at("bytes").get<bool>();
    field.position_values = fixed_values(json.at("shape").get<std::vector<std::int64_t>>());
}

// The dataset with the shapes of a ragged field's rows.
FieldSchema shape_schema(const FieldSchema& of, std::size_t dimensions) {
    FieldSchema field;
    field.name = shape_name(of.name);
    field.type = ElementType::int64;
    field.row_shape = {static_cast<std::int64_t>(dimensions)};
    field.rank = 2;
    field.is_target = of.is_target;
    field.minimum = 0;
    field.maximum = static_cast<double>(most_row_values);
    field.meaning = "the shape of a row of '" + of.name + "'";
    return field;
}

FieldSchema field_schema(const Json& json) {
    FieldSchema field;
    field.name = json.at("name").get<std::string>();
    field.type = element_type(json.at("type").get<std::string>());
    field.is_ragged = json.at("ragged").get<bool>();
    if (field.is_ragged)
        set_ragged(field, json);
    else
        field.row_shape = json.at("shape").get<std::vector<std::int64_t>>();
    field.rank = 1 + static_cast<int>(field.row_shape.size());
    field.same_row_shape_as = json.at("same_shape_as").get<std::string>();
    field.is_target = json.at("is_target").get<bool>();
    field.minimum = bound(json.at("minimum"));
    field.maximum = bound(json.at("maximum"));
    field.meaning = json.at("meaning").get<std::string>();
    return field;
}

void add_field(PythonTask& task, const Json& json) {
    const FieldSchema field = field_schema(json);
    RowForm form;
    if (field.is_ragged && field.sets_lengths)
        form = {json.at("shape").get<std::vector<std::int64_t>>(),
                json.at("padding").get<double>()};
    task.schema.fields.push_back(field);
    task.forms.push_back(form);
    if (std::count(form.shape.begin(), form.shape.end(), -1) < 2)
        return;
    task.schema.fields.push_back(shape_schema(field, form.shape.size()));
    task.forms.emplace_back();
}

Option<std::string> part_option(const Json& json) {
    const auto name = json.at("name").get<std::string>();
    const auto type = json.at("type").get<std::string>();
    const auto initial = json.at("default").get<std::string>();
    const auto help = json.at("help").get<std::string>();
    OptionSpec spec;
    if (type == "N")
        spec = whole_number_option(name, initial, help, -1'000'000'000);
    else if (type == "X")
        spec = number_option(name, initial, help, std::numeric_limits<double>::lowest());
    else if (type.empty())
        spec = switch_option(name, help);
    else if (!json.at("choices").empty())
        spec =
            choice_option(name, json.at("choices").get<std::vector<std::string>>(), initial, help);
    else
        spec = text_option(name, type, initial, help);
    spec.may_change = json.at("changeable").get<bool>();
    const auto check = spec.check;
    return {spec, [check](const std::string& text) {
                if (check)
                    check(text);
                return text;
            }};
}

WeightRule weight_rule(const Json& json) {
    const auto field = json.get<std::string>();
    return field.empty() ? WeightRule{} : WeightRule{WeightRule::Kind::tokens, field};
}

PythonTask task_of(const Json& json) {
    PythonTask task;
    task.schema.kind = json.at("kind").get<std::string>();
    task.schema.units_field = json.at("tokens").get<std::string>();
    for (const Json& field : json.at("fields"))
        add_field(task, field);
    task.losses = json.at("losses").get<std::vector<std::string>>();
    for (const Json& metric : json.at("metrics"))
        task.metrics.push_back({metric.at("name").get<std::string>(),
                                metric.at("loss").get<std::size_t>(),
                                metric.at("is_share").get<bool>()});
    for (const Json& score : json.at("computed"))
        task.scores.push_back(
            {score.at("name").get<std::string>(), score.at("is_share").get<bool>()});
    task.events = json.at("events").get<std::vector<std::string>>();
    for (const Json& rule : json.at("weights"))
        task.weights.push_back(weight_rule(rule));
    task.collates = json.at("collates").get<bool>();
    task.makes_samples = json.at("makes_samples").get<bool>();
    task.transforms = json.at("transforms").get<bool>();
    task.reads_dataset = json.at("reads_dataset").get<bool>();
    task.predicts = json.at("predicts").get<bool>();
    task.is_exact = json.at("exact").get<bool>();
    task.has_optimizer = json.at("has_optimizer").get<bool>();
    task.has_schedule = json.at("has_schedule").get<bool>();
    for (const Json& option : json.at("options"))
        task.options.push_back(part_option(option));
    for (const auto& [name, value] : json.at("defaults").items())
        task.defaults.emplace_back(name, value.get<std::string>());
    return task;
}

}  // namespace

std::string python_choices(const PartOptions& options) {
    Json json{{"model_config", options.model_config},
              {"init_model", options.init_model},
              {"data", options.data},
              {"valid_data", options.valid_data},
              {"seed", options.seed},
              {"cache_dir", options.cache_dir},
              {"options", options.own}};
    json["dropout"] = options.dropout ? Json(*options.dropout) : Json(nullptr);
    json["attention_dropout"] =
        options.attention_dropout ? Json(*options.attention_dropout) : Json(nullptr);
    return json_text(json);
}

std::string shape_name(const std::string& name) {
    return name + "_shape";
}

PythonTask describe_python_task() {
    return task_of(parse_json<Json>(call_python("hetseq::task_describe", {}).at(0).toStringRef()));
}

}  // namespace hetseq
