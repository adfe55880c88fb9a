#include "hetseq/app/commands/plan/run_measurements.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/state/measured_chain_json.hpp"
#include "hetseq/state/step_cost_file.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

namespace fs = std::filesystem;
using ReadJson = nlohmann::json;

constexpr double most_measured = 1e15;

ReadJson read_summary(const fs::path& path) {
    std::ifstream file(path);
    if (!file)
        throw MissingInput("cannot read " + path.string(),
                           "a run writes it at its end",
                           "name the --save-dir of a finished run");
    try {
        return parse_json<ReadJson>(file);
    } catch (const ReadJson::exception& error) {
        throw BadData(path.string() + " is not JSON", error.what(), "name another run");
    }
}

// A number in the range that a measurement can have.
double measured(const MeasuredRun& run, const ReadJson& json, const char* key) {
    const double value = json.at(key).get<double>();
    if (!(value >= 0 && value <= most_measured))
        throw BadData(run.name + "/summary.json: '" + key + "' is " + json_text(json.at(key)),
                      "no run measures that",
                      "name another run");
    return value;
}

// What `read` returns. Its errors say in which file.
template <class Read>
auto read_in(const MeasuredRun& run, const Read& read) {
    try {
        return read();
    } catch (const BadData& error) {
        throw BadData(run.name + "/summary.json: " + error.what(), "", "name another run");
    }
}

void take_summary(const ReadJson& summary, MeasuredRun& run) {
    run.step_ms = measured(run, summary.at("step_ms"), "median");
    for (const ReadJson& rank : summary.at("ranks")) {
        run.ranks.push_back({rank.at("host").get<std::string>(),
                             rank.at("device").get<std::string>(),
                             measured(run, rank, "share"),
                             measured(run, rank, "compute_ms"),
                             measured(run, rank, "wait_ms")});
        if (rank.contains("cost"))
            run.ranks.back().cost =
                read_in(run, [&] { return parse_step_cost(json_text(rank.at("cost"))); });
    }
    if (summary.contains("chain"))
        run.chain = read_in(run, [&] { return measured_chain_from_json(summary.at("chain")); });
    run.is_pipelined = summary.contains("workers");
    const double units = std::accumulate(
        run.ranks.begin(), run.ranks.end(), 0.0, [](double sum, const MeasuredRun::Rank& rank) {
            return sum + rank.units;
        });
    run.batch = std::llround(std::min(units, 1e9));
}

template <class Number>
Number number_of(const std::string& text) {
    Number value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// As config.cfg records it. Nothing where there is no list: a run with samples of unequal length.
void take_micro_batches(const ByRank<std::int64_t>& list, MeasuredRun& run) {
    for (std::size_t r = 0; r < run.ranks.size(); ++r)
        if (const auto size = list.find(RankPlace(static_cast<int>(r), "")))
            run.ranks[r].micro_batch = *size;
}

void take_config(const std::string& path, const OptionTable& table, MeasuredRun& run) {
    const Options options = typed_options(parse_known_options(path, table));
    if (options.batch_size > 0)
        run.batch = options.batch_size;
    run.bucket_mib = options.bucket_mb;
    run.sent_share = options.reduce_precision == "bf16" ? 0.5 : 1;
    take_micro_batches(options.max_sentences, run);
}

}  // namespace

MeasuredRun read_measured_run(const std::string& folder, const OptionTable& table) {
    MeasuredRun run;
    run.name = folder;
    const fs::path path = fs::path(folder) / "summary.json";
    try {
        take_summary(read_summary(path), run);
    } catch (const ReadJson::exception& error) {
        throw BadData(path.string() + " is not a run's summary", error.what(), "name another run");
    }
    const fs::path config = fs::path(folder) / "config.cfg";
    if (fs::exists(config))
        take_config(config.string(), table, run);
    const fs::path model = fs::path(folder) / "model.safetensors";
    if (fs::exists(model))
        run.model_bytes = static_cast<double>(fs::file_size(model));
    return run;
}

std::vector<std::string> fill_from_cost_files(Cluster& cluster, const fs::path& folder) {
    std::vector<std::string> notes;
    for (DeviceClass& device : cluster.devices) {
        if (device.costs.empty())
            continue;
        const fs::path path = folder / device.costs;
        take_cost(device, read_step_cost(path), path.string());
        notes.push_back(device.name + ": " + format_number(1000 * device.cost.rate()) +
                        " units/s, micro-batch " + std::to_string(device.cost.micro_batch) +
                        ", as in " + path.string());
    }
    return notes;
}

}  // namespace hetseq
