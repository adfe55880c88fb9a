#include <algorithm>
#include <fstream>

#include "hetseq/util/json.hpp"
#include "hetseq/util/precision.hpp"
#include "hetseq/util/quantity.hpp"

#include "json_numbers.hpp"
#include "run_files.hpp"
#include <nlohmann/json.hpp>

namespace hetseq::detail {

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
    const auto value = json.find(key);
    return value != json.end() && value->is_string() ? value->get<std::string>() : std::string();
}

void take_numbers(const Json& json, const std::string& prefix, std::map<std::string, double>& to) {
    for (const auto& [key, value] : json.items())
        if (value.is_number())
            to[prefix + key] = value.get<double>();
        else if (value.is_object())
            take_numbers(value, prefix + key + ".", to);
}

RunSummary::Rank rank_of(const Json& json, std::size_t number) {
    std::map<std::string, double> times;
    take_numbers(json, "", times);
    const auto time = [&](const std::string& key) {
        const auto found = times.find(key);
        return found == times.end() ? std::nullopt : std::optional(found->second);
    };
    std::string name = "rank " + std::to_string(number);
    for (const std::string& part : {text_of(json, "host"), text_of(json, "device")})
        name += part.empty() ? "" : ", " + part;
    const std::string precision = text_of(json, "precision");
    if (!precision.empty() && precision != to_string(Precision::fp32))
        name += ", " + precision;
    if (const double layers = time("recomputed_layers").value_or(0); layers > 0)
        name += ", " + count_text(static_cast<std::int64_t>(layers), "layer") + " recomputed";
    if (const auto stage = times.find("stage.number"); stage != times.end())
        name += ", stage " + std::to_string(static_cast<std::int64_t>(stage->second));
    RunSummary::Rank rank{name};
    for (const RankTimeText& text : rank_time_texts)
        rank.times[text.time] = time(std::string(text.key));
    return rank;
}

RunSummary::Worker worker_of(const Json& json) {
    return {.stages = json.at("ranks").size(),
            .planned_ms = json.at("planned_ms"),
            .ms = json.at("ms"),
            .planned_bubble = json.at("planned_bubble"),
            .bubble = json.at("bubble")};
}

RunSummary::Layout layout_of(const Json& json) {
    return {.name = json.at("name"), .planned_ms = json.at("planned_ms"), .fits = json.at("fits")};
}

// Throws the library's exceptions for a file of another form.
RunSummary take_summary(const Json& json) {
    RunSummary summary;
    summary.status = json.at("status").get<std::string>();
    take_numbers(json, "", summary.numbers);
    summary.unit = text_of(json, "unit");
    summary.is_exact = json.value("exact", true);
    summary.policy = text_of(json.value("balance", Json::object()), "policy");
    for (const Json& rank : json.value("ranks", Json::array()))
        summary.ranks.push_back(rank_of(rank, summary.ranks.size()));
    for (const Json& worker : json.value("workers", Json::array()))
        summary.workers.push_back(worker_of(worker));
    for (const Json& layout : json.value("layouts", Json::array()))
        summary.layouts.push_back(layout_of(layout));
    for (const Json& sentence : json.value("advice", Json::array()))
        summary.advice.push_back(sentence.get<std::string>());
    return summary;
}

std::vector<AllocationFrom> take_allocations(const Json& json) {
    std::vector<AllocationFrom> allocations;
    for (const Json& entry : json.at("allocations"))
        allocations.push_back({count_of(entry.at("update")), counts_of(entry.at("units"))});
    std::stable_sort(
        allocations.begin(),
        allocations.end(),
        [](const AllocationFrom& a, const AllocationFrom& b) { return a.update < b.update; });
    return allocations;
}

// `take` of the file's JSON. If the file is missing or of another kind, only adds a sentence that
// ends with `consequence`.
template <class Take>
auto take_file(const std::filesystem::path& path,
               const char* consequence,
               std::vector<std::string>& missing,
               Take take) -> std::optional<decltype(take(Json()))> {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        missing.push_back("There is no " + path.filename().string() + ": " + consequence);
        return std::nullopt;
    }
    try {
        return take(parse_json<Json>(file));
    } catch (const Json::exception&) {
        missing.push_back(path.filename().string() + " is cut off or not hetseq's: " + consequence);
        return std::nullopt;
    }
}

}  // namespace

std::optional<RunSummary> read_summary(const std::filesystem::path& path,
                                       std::vector<std::string>& missing) {
    return take_file(path,
                     "the run is going on or ended early, and its times are those of its lines.",
                     missing,
                     take_summary);
}

std::vector<AllocationFrom> read_allocations(const std::filesystem::path& path,
                                             std::vector<std::string>& missing) {
    return take_file(path,
                     "the allocations are those of the lines of metrics.jsonl.",
                     missing,
                     take_allocations)
        .value_or(std::vector<AllocationFrom>());
}

}  // namespace hetseq::detail
