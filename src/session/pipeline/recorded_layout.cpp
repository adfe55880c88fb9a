#include "hetseq/session/pipeline/recorded_layout.hpp"

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/text.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
#include "hetseq/session/rank_list.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

const std::string& size_place(const RunSettings& settings) {
    return settings.is_ragged() ? settings.options().max_tokens : settings.options().max_sentences;
}

std::string value_of(const RunIdentity& saved, const RunSettings& settings, const void* place) {
    const auto found = saved.options.find(settings.option_at(place).name);
    return found == saved.options.end() ? "" : found->second;
}

// By rank of `saved`: its number in the job, of which some ranks may have been left out.
std::vector<int> job_ranks(const RunIdentity& saved) {
    if (!saved.job_ranks.empty())
        return saved.job_ranks;
    std::vector<int> ranks(saved.devices.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

// Limits of a stage's rank have the stage behind them. Those of ranks beside which others were left
// out tell of more cores than they have here.
bool have_same_speeds(const RunSettings& settings, const RunIdentity& saved) {
    const std::vector<int> ranks = job_ranks(saved);
    const std::size_t here = settings.topology.ranks.size();
    if (saved.limits.size() != ranks.size() || saved.devices.size() != ranks.size() ||
        (saved.job_ranks.empty() ? ranks.size() != here
                                 : std::cmp_greater_equal(ranks.back(), here)))
        return false;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        if (saved.devices[r] != settings.topology.rank(ranks[r]).device_name ||
            (saved.job_ranks.empty() &&
             !saved.limits[r].starts_with(rank_limits(settings, ranks[r]))))
            return false;
    return true;
}

std::optional<PipelineLayout> recorded_pipelines(const RunSettings& settings,
                                                 const RunIdentity& saved,
                                                 const std::string& workers) {
    const std::string units = value_of(saved, settings, &settings.options().stage_units);
    if (units.empty() || units == "auto")
        return std::nullopt;
    const std::vector<int> in_job = job_ranks(saved);
    const std::vector<std::vector<int>> ranks = ranks_of_workers(workers, settings.topology);
    const std::vector<StageUnits> stages = parse_stage_units(units);
    const std::string& size = settings.option_at(&size_place(settings)).name;
    const std::string sizes = value_of(saved, settings, &size_place(settings));
    if (ranks.size() != stages.size())
        return std::nullopt;
    PipelineLayout layout;
    std::size_t working = 0;
    for (std::size_t w = 0; w < ranks.size(); ++w) {
        if (ranks[w].size() != stages[w].units.size())
            return std::nullopt;
        working += ranks[w].size();
        std::vector<int> of_worker;
        for (const int rank : ranks[w])
            of_worker.push_back(in_job.at(static_cast<std::size_t>(rank)));
        layout.workers.push_back(
            given_worker(std::move(of_worker),
                         stages[w].units,
                         rank_value(size, sizes, settings.topology, ranks[w].front()),
                         stages[w].extra_in_flight));
    }
    return working == in_job.size() ? std::optional(std::move(layout)) : std::nullopt;
}

}  // namespace

void record_layout(const std::optional<PipelineLayout>& pipelines, RunSettings& settings) {
    if (!pipelines) {
        settings.settle(settings.options().virtual_workers, "none");
        return;
    }
    std::vector<std::string> workers;
    std::vector<StageUnits> units;
    std::vector<std::int64_t> micro_batches(settings.topology.ranks.size(), 0);
    for (const WorkerLayout& worker : pipelines->workers) {
        std::vector<std::string> ranks;
        StageUnits& stages = units.emplace_back();
        stages.extra_in_flight = worker.extra_in_flight;
        for (std::size_t s = 0; s < worker.ranks.size(); ++s) {
            ranks.push_back(std::to_string(worker.ranks[s]));
            stages.units.push_back(worker.cut.units[s].size());
            micro_batches[static_cast<std::size_t>(worker.ranks[s])] = worker.micro_batch;
        }
        workers.push_back(join(ranks, "+"));
    }
    settings.settle(settings.options().virtual_workers, join(workers, ","));
    settings.settle(settings.options().stage_units, stage_units_text(units));
    settings.settle(size_place(settings), rank_list(micro_batches));
}

std::optional<LayoutChoice> recorded_layout(const RunSettings& settings, const RunIdentity& saved) {
    const Options& options = settings.options();
    if (options.virtual_workers == "none" || options.stage_units != "auto" ||
        !have_same_speeds(settings, saved))
        return std::nullopt;
    const std::string workers = value_of(saved, settings, &options.virtual_workers);
    if (options.virtual_workers == "auto" && workers == "none")
        return LayoutChoice{
            .ranks = job_ranks(saved),
            .shards_state = options.shard == "none" &&
                            value_of(saved, settings, &options.shard) == "optimizer"};
    if (std::optional<PipelineLayout> pipelines = recorded_pipelines(settings, saved, workers))
        return LayoutChoice{.pipelines = pipelines, .ranks = pipelines->ranks()};
    return std::nullopt;
}

}  // namespace hetseq
