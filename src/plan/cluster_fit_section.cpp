#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/text.hpp"

#include "cluster_sections.hpp"
#include "ini_fields.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_rows = 256;

// "compute" or "compute:DEVICE" or a link's number.
void read_parameter(const std::string& word,
                    const IniEntry& entry,
                    const std::string& file,
                    Cluster& cluster) {
    static const std::map<std::string, FitNumber> numbers{
        {"compute", FitNumber::compute},
        {"spread", FitNumber::spread},
        {"intra-latency-us", FitNumber::intra_latency},
        {"intra-bandwidth-gb", FitNumber::intra_bandwidth},
        {"inter-latency-us", FitNumber::inter_latency},
        {"inter-bandwidth-gb", FitNumber::inter_bandwidth},
        {"inter-update-ms", FitNumber::inter_update}};
    FitParameter parameter{word, FitNumber::compute, std::nullopt};
    if (word.rfind("compute:", 0) == 0) {
        const auto names = names_of(cluster.devices);
        const auto found = std::find(names.begin(), names.end(), word.substr(8));
        if (found == names.end())
            reject_line(file,
                        entry.line,
                        "parameters: no device '" + word.substr(8) + "'",
                        "",
                        suggestion(word.substr(8), names));
        parameter.device = static_cast<std::size_t>(found - names.begin());
    } else if (const auto found = numbers.find(word); found != numbers.end()) {
        parameter.number = found->second;
    } else {
        std::vector<std::string> names;
        for (const auto& number : numbers)
            names.push_back(number.first);
        reject_line(file,
                    entry.line,
                    "parameters: '" + word + "' cannot be fitted",
                    "",
                    suggestion(word, names));
    }
    for (const FitParameter& other : cluster.fit)
        if (other.name == word)
            reject_line(file, entry.line, "parameters: '" + word + "' stands twice");
    cluster.fit.push_back(parameter);
}

// "fit 940 p100=4 batch=512": use, step time [ms], nodes by class, and the batch where it is not
// the job's.
void read_row(const IniEntry& entry, const std::string& file, Cluster& cluster) {
    const char* example = "write for example row = fit 940 p100=4";
    const auto words = words_of(entry.value);
    if (words.size() < 3 || (words[0] != "fit" && words[0] != "predict"))
        reject_line(file,
                    entry.line,
                    "row: cannot read '" + entry.value + "'",
                    "a row is fit|predict STEP_MS NODES=COUNT ... [batch=UNITS]",
                    example);
    MeasuredRow row;
    row.is_fitted = words[0] == "fit";
    row.step_ms = to_number(words[1], entry, file, least_unit_ms, most_ms * most_ms);
    row.nodes.resize(cluster.nodes.size(), 0);
    const auto names = names_of(cluster.nodes);
    std::int64_t ranks = 0;
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        if (equals == std::string::npos)
            reject_line(file,
                        entry.line,
                        "row: cannot read '" + words[i] + "'",
                        "expected NODES=COUNT",
                        example);
        const std::string name = words[i].substr(0, equals);
        const std::string number = words[i].substr(equals + 1);
        if (name == "batch") {
            row.batch = to_integer(number, entry, file, 1, most_units);
            continue;
        }
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            reject_line(
                file, entry.line, "row: no nodes '" + name + "'", "", suggestion(name, names));
        const auto index = static_cast<std::size_t>(found - names.begin());
        row.nodes[index] = to_integer(number, entry, file, 0, most_planned_ranks);
        ranks += row.nodes[index] * cluster.nodes[index].gpus;
    }
    if (ranks < 1 || ranks > most_planned_ranks)
        reject_line(file,
                    entry.line,
                    "row: its nodes have " + std::to_string(ranks) + " GPUs",
                    "a plan takes 1 to 16384");
    cluster.rows.push_back(std::move(row));
}

}  // namespace

void read_fit(const IniSection& section, const std::string& file, Cluster& cluster) {
    IniFields fields(section, file);
    fields.each("parameters", [&](const IniEntry& entry) {
        for (const std::string& word : words_of(entry.value))
            read_parameter(word, entry, file, cluster);
    });
    fields.each("row", [&](const IniEntry& entry) { read_row(entry, file, cluster); });
    fields.finish();
    const auto fitted = static_cast<std::size_t>(
        std::count_if(cluster.rows.begin(), cluster.rows.end(), [](const MeasuredRow& row) {
            return row.is_fitted;
        }));
    if (cluster.fit.size() > fitted)
        fields.reject("parameters",
                      std::to_string(cluster.fit.size()) + " numbers are to be fitted to " +
                          std::to_string(fitted) + " rows",
                      "so few rows cannot determine them",
                      "fit fewer, or mark more rows 'fit'");
    if (cluster.rows.size() > most_rows)
        fields.reject("row", "more than 256 rows");
}

}  // namespace hetseq
