#include "hetseq/state/step_cost_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"
#include "hetseq/state/step_cost_json.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;  // written
// For reading. Objects of the ordered kind copy all that they hold, however deeply nested, as they
// grow.
using ReadJson = nlohmann::json;

// FNV-1a, 64 bits: the same on every machine that shares the folder.
std::uint64_t hash(const std::string& text) {
    std::uint64_t value = 14695981039346656037ULL;
    for (const char c : text)
        value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return value;
}

constexpr std::int64_t largest_count = std::numeric_limits<std::int64_t>::max();
constexpr const char* where_costs_are =
    "name a step-cost-*.json of a run's --cache-dir, or what hetseq bench roofline --device printed";
constexpr double most_ms = 1e12;  // products with units stay finite
constexpr double most_mb = 1e12;
constexpr double least_scale = 1e-9, most_scale = 1e9;
constexpr double largest_square = 1e6;

// Throws the library's exceptions and BadData.
StepTable table_from_json(const ReadJson& json) {
    std::map<std::int64_t, double> times;  // by units [ms]
    for (const ReadJson& point : json)
        if (!times
                 .emplace(json_integer(point.at(0), 0, largest_count),
                          json_number(point.at(1), 0, most_ms))
                 .second)
            throw BadData("its table has two times of " + json_text(point.at(0)) + " units");
    if (times.empty() || times.rbegin()->first == 0)
        throw BadData("its table has no time for any work");
    std::vector<CostPoint> points;
    for (const auto& [units, ms] : times)
        points.push_back({units, ms});
    return StepTable(std::move(points));
}

}  // namespace

Json step_cost_to_json(const StepCost& cost) {
    Json json{{"start_ms", cost.start_ms},
              {"micro_batch_ms", cost.micro_batch_ms},
              {"unit_ms", cost.unit_ms},
              {"micro_batch", cost.micro_batch},
              {"scale", cost.scale}};
    if (cost.update_ms > 0)
        json["update_ms"] = cost.update_ms;
    if (cost.max_units < largest_count)
        json["max_units"] = cost.max_units;
    if (cost.recomputed_layers > 0)
        json["recomputed_layers"] = cost.recomputed_layers;
    if (cost.activations_mb > 0)
        json["activations_mb"] = cost.activations_mb;
    if (cost.forward_part != StepCost{}.forward_part)
        json["forward_part"] = cost.forward_part;
    if (!cost.table.empty())
        for (const CostPoint& point : cost.table.points())
            json["table"].push_back({point.units, point.ms});
    return json;
}

StepCost step_cost_from_json(const ReadJson& json) {
    StepCost cost;
    cost.start_ms = json_number(json.at("start_ms"), 0, most_ms);
    cost.micro_batch_ms = json_number(json.at("micro_batch_ms"), 0, most_ms);
    cost.unit_ms = json_number(json.at("unit_ms"), 0, most_ms);
    cost.micro_batch = json_integer(json.at("micro_batch"), 0, largest_count);
    if (json.contains("update_ms"))
        cost.update_ms = json_number(json.at("update_ms"), 0, most_ms);
    if (json.contains("max_units"))
        cost.max_units = json_integer(json.at("max_units"), 0, largest_count);
    if (json.contains("recomputed_layers"))
        cost.recomputed_layers = json_integer(json.at("recomputed_layers"), 0, largest_count);
    if (json.contains("forward_part"))
        cost.forward_part = json_number(json.at("forward_part"), 0, 1);
    if (json.contains("activations_mb"))
        cost.activations_mb = json_number(json.at("activations_mb"), 0, most_mb);
    cost.scale = json_number(json.at("scale"), least_scale, most_scale);
    if (json.contains("table"))
        cost.table = table_from_json(json.at("table"));
    return cost;
}

std::string step_cost_json(const StepCost& cost) {
    return json_text(step_cost_to_json(cost));
}

StepCost parse_step_cost(const std::string& json) {
    try {
        return step_cost_from_json(parse_json<ReadJson>(json));
    } catch (const std::exception& error) {
        throw BadData("this is not a step cost: " + json.substr(0, 80), error.what());
    }
}

StepCost read_step_cost(const std::filesystem::path& path) {
    check_text_file(path);
    std::ifstream file{path};
    if (!file)
        throw MissingInput(
            "cannot read " + path.string(), "it does not exist or cannot be read", where_costs_are);
    try {
        return step_cost_from_json(parse_json<ReadJson>(file).at("cost"));
    } catch (const std::exception& error) {
        throw BadData(path.string() + " holds no cost", error.what(), where_costs_are);
    }
}

std::filesystem::path StepCostCache::file_of(const std::string& key) const {
    std::ostringstream name;
    name << "step-cost-" << std::hex << hash(key) << ".json";
    return folder_ / name.str();
}

std::optional<KeptCost> StepCostCache::find(const std::string& key) const {
    std::ifstream file{file_of(key)};
    std::string text{std::istreambuf_iterator<char>(file), {}};
    try {
        const ReadJson json = parse_json<ReadJson>(text);
        if (json.at("key") != key)
            return std::nullopt;
        return KeptCost{step_cost_from_json(json.at("cost")),
                        {json_number(json.value("square", ReadJson(0)), 0, largest_square)}};
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

std::string StepCostCache::store(const std::string& key, const KeptCost& kept) const {
    if (folder_.empty())
        return "";
    try {
        const Json json{{"key", key},
                        {"square", kept.item_cost.square},
                        {"cost", step_cost_to_json(kept.cost)}};
        std::filesystem::create_directories(folder_);
        write_atomically(file_of(key), json_text(json, 2) + "\n");
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::filesystem::path default_cache_folder() {
    if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != 0)
        return std::filesystem::path(folder) / "hetseq";
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
        return std::filesystem::path(home) / ".cache" / "hetseq";
    return {};
}

}  // namespace hetseq
