#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "hetseq/util/json.hpp"

#include "json_numbers.hpp"
#include "run_files.hpp"
#include <nlohmann/json.hpp>

namespace hetseq::detail {

namespace {

using Json = nlohmann::json;

constexpr std::size_t most_events = 500;

// These are not curves: the place of the line, and sums over its interval.
bool is_curve(const std::string& key) {
    static const std::set<std::string> others{"update", "epoch", "samples", "units"};
    return others.count(key) == 0;
}

// JSON cannot express a number that is not finite, so hetseq writes null.
double number_of(const Json& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// A run that was continued from an earlier update replaces what it had written about later ones.
void add_curves(const Json& line, double update, std::map<std::string, Series>& curves) {
    for (const auto& [key, value] : line.items()) {
        if (!(value.is_number() || value.is_null()) || !is_curve(key))
            continue;
        Series& curve = curves[key];
        for (; curve.size() > 0 && curve.x.back() >= update; curve.x.pop_back())
            curve.y.pop_back();
        curve.add(update, number_of(value));
    }
}

// Adds the line's means to sums over all lines that know the ranks' times.
void add_times(const Json& line, RunMetrics& metrics) {
    ++metrics.train_lines;
    const double step_ms = line.value("step_ms", 0.0);
    const auto times = line.find("rank_compute_ms");
    if (times == line.end() || times->empty())
        return;
    ++metrics.timed_lines;
    metrics.step_ms += step_ms;
    metrics.compute_ms.resize(std::max(metrics.compute_ms.size(), times->size()));
    for (std::size_t r = 0; r < times->size(); ++r)
        metrics.compute_ms[r] += times->at(r).is_number() ? times->at(r).get<double>() : 0;
}

void add_allocation(const Json& line, std::int64_t update, RunMetrics& metrics) {
    const auto units = line.find("allocation");
    if (units == line.end())
        return;
    auto allocation = counts_of(*units);
    if (metrics.allocations.empty() || metrics.allocations.back().units != allocation)
        metrics.allocations.push_back({update, std::move(allocation)});
}

// Throws the library's exceptions for a line of another form.
void take_line(const Json& line, RunMetrics& metrics) {
    const auto kind = line.at("kind").get<std::string>();
    const auto update = count_of(line.at("update"));
    if (kind == "train") {
        add_curves(line, static_cast<double>(update), metrics.train);
        add_times(line, metrics);
        add_allocation(line, update, metrics);
    } else if (kind == "valid") {
        add_curves(line, static_cast<double>(update), metrics.valid);
    } else if (kind == "event" && metrics.events.size() >= most_events) {
        ++metrics.events_left_out;
    } else if (kind == "event") {
        metrics.events.push_back({update, line.at("message").get<std::string>()});
    }
    metrics.last_update = std::max(metrics.last_update, update);
    metrics.epoch = line.value("epoch", metrics.epoch);
}

bool take_text(const std::string& text, RunMetrics& metrics) {
    try {
        take_line(parse_json<Json>(text), metrics);
        return true;
    } catch (const Json::exception&) {
        return false;
    }
}

}  // namespace

RunMetrics read_metrics(const std::filesystem::path& path, std::vector<std::string>& missing) {
    RunMetrics metrics;
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        missing.push_back("metrics.jsonl cannot be read: no curves.");
        return metrics;
    }
    std::int64_t unreadable = 0;
    for (std::string text; std::getline(file, text);) {
        const bool taken = take_text(text, metrics);
        if (!taken && file.eof())
            missing.push_back("The last line of metrics.jsonl is cut off.");
        else if (!taken)
            ++unreadable;
    }
    if (unreadable > 0)
        missing.push_back(std::to_string(unreadable) +
                          " lines of metrics.jsonl are not hetseq's and are left out.");
    if (metrics.train_lines == 0)
        missing.push_back("metrics.jsonl holds no updates.");
    const auto lines = static_cast<double>(std::max<std::int64_t>(1, metrics.timed_lines));
    metrics.step_ms /= lines;
    for (double& mean : metrics.compute_ms)
        mean /= lines;
    return metrics;
}

}  // namespace hetseq::detail
