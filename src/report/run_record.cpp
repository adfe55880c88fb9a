#include "hetseq/report/run_record.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "run_files.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

// Lines of "name = value"; options that a newer version added are shown as they are.
std::map<std::string, std::string> read_options(const fs::path& path,
                                                std::vector<std::string>& missing) {
    std::map<std::string, std::string> options;
    std::ifstream file(path, std::ios::binary);
    if (!file)
        missing.push_back("config.cfg cannot be read: no options.");
    for (std::string line; std::getline(file, line);) {
        const auto equals = line.find('=');
        if (equals == std::string::npos || line.front() == '#')
            continue;
        const auto name = split(line.substr(0, equals), '\n');
        const auto value = split(line.substr(equals + 1), '\n');
        if (!name.empty())
            options[name.front()] = value.empty() ? "" : value.front();
    }
    return options;
}

void require_run(const std::string& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
        throw MissingInput("there is no folder " + folder, "", "name the --save-dir of a run");
    if (!fs::exists(fs::path(folder) / "config.cfg", ignored) &&
        !fs::exists(fs::path(folder) / "metrics.jsonl", ignored))
        throw MissingInput(folder + " holds no run",
                           "neither config.cfg nor metrics.jsonl is there",
                           "name the --save-dir of a run");
}

// Absolute, with the folder's name at its end.
fs::path normal_path(const std::string& folder) {
    const fs::path path = fs::absolute(folder).lexically_normal();
    return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

// How many of the first parts all `paths` share, but for the last part of each.
std::ptrdiff_t shared_parts(const std::vector<fs::path>& paths) {
    std::ptrdiff_t shared = std::distance(paths.front().begin(), paths.front().end()) - 1;
    for (const fs::path& path : paths) {
        const auto [own, first] = std::mismatch(path.begin(),
                                                std::prev(path.end()),
                                                paths.front().begin(),
                                                std::next(paths.front().begin(), shared));
        shared = std::distance(path.begin(), own);
    }
    return shared;
}

void shorten_names(std::vector<RunRecord>& runs) {
    std::vector<fs::path> paths;
    for (const RunRecord& run : runs)
        paths.push_back(normal_path(run.name));
    const std::ptrdiff_t shared = paths.empty() ? 0 : shared_parts(paths);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        fs::path rest;
        for (auto part = std::next(paths[i].begin(), shared); part != paths[i].end(); ++part)
            rest /= *part;
        runs[i].name = rest.string();
    }
}

}  // namespace

std::optional<double> RunSummary::number(const std::string& key) const {
    const auto found = numbers.find(key);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

RunRecord read_run(const std::string& folder) {
    require_run(folder);
    const fs::path path(folder);
    RunRecord run;
    run.name = folder;
    while (run.name.size() > 1 && run.name.back() == '/')
        run.name.pop_back();
    run.options = read_options(path / "config.cfg", run.missing);
    run.metrics = detail::read_metrics(path / "metrics.jsonl", run.missing);
    run.summary = detail::read_summary(path / "summary.json", run.missing);
    if (!run.summary || run.summary->policy != "pipeline")  // its ranks have one share
        run.allocations = detail::read_allocations(path / "allocations.json", run.missing);
    if (run.allocations.empty())
        run.allocations = run.metrics.allocations;
    if (run.summary &&
        run.summary->number("updates").value_or(0) < static_cast<double>(run.metrics.last_update))
        run.missing.push_back("summary.json is older than the last lines of metrics.jsonl.");
    return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders) {
    std::vector<RunRecord> runs;
    std::transform(folders.begin(), folders.end(), std::back_inserter(runs), read_run);
    shorten_names(runs);
    return runs;
}

}  // namespace hetseq
