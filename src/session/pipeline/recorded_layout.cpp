#include "hetseq/session/pipeline/recorded_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/util/precision.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// Where a host stands among those of the job: other hosts of the same kind do as well.
std::string host_text(const Topology& topology, const RankInfo& rank) {
    for (const RankInfo& other : topology.ranks)
        if (other.host == rank.host)
            return "on the host of rank " + std::to_string(other.rank);
    return {};
}

bool leaves_open(const Options& options) {
    return options.virtual_workers != "none" && options.stage_units == "auto";
}

// All that a choice depends on, of settings that no choice has changed yet.
std::string question_of(const RunSettings& settings) {
    const Options& options = settings.options();
    std::vector<std::string> lines{"virtual workers " + options.virtual_workers,
                                   "balance " + options.balance.policy,
                                   "batch " + std::to_string(options.batch_size) + " samples, " +
                                       std::to_string(options.batch_tokens) + " tokens",
                                   "micro-batches of " + options.max_sentences.text() +
                                       " samples, " + options.max_tokens.text() + " tokens",
                                   "cache " + options.cache_mb.text() + " MiB",
                                   options.valid_data.empty() ? "no validation" : "validation",
                                   "recompute " + options.recompute.text(),
                                   "shard " + options.shard,
                                   "staleness " + std::to_string(options.trainer.staleness),
                                   "sums in " + options.reduce_precision};
    for (const RankInfo& rank : settings.topology.ranks)
        lines.push_back(rank.device_name + " " + host_text(settings.topology, rank) + ", " +
                        to_string(settings.precisions.at(static_cast<std::size_t>(rank.rank))) +
                        rough_rank_limits(settings, rank.rank));
    return join(lines, "\n");
}

// Of one shape: rows of unequal length must fit, and nobody has looked at them yet.
void limit_micro_batches(const std::vector<std::int64_t>& most, RunSettings& settings) {
    if (settings.is_ragged())
        return;
    for (std::size_t r = 0; r < most.size(); ++r)
        if (most[r] > 0)
            settings.capacities[r] = std::min(settings.capacities[r], most[r]);
    settings.settle(settings.capacity_list(), settings.capacities);
}

}  // namespace

void record_layout(const LayoutChoice& choice, RunSettings& settings) {
    const std::optional<PipelineLayout>& pipelines = choice.pipelines;
    if (!pipelines) {
        settings.settle(settings.options().virtual_workers, "none");
        const std::string& balance = settings.options().balance.policy;
        const bool is_known = choice.micro_batches.size() == settings.capacities.size();
        const bool is_measured = balance == "auto" && settings.capacities.size() > 1;
        // Declared capacities say the shares as well.
        if (is_known && !is_measured && balance != "file" && balance != "declared")
            limit_micro_batches(choice.micro_batches, settings);
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
    settings.settle(settings.capacity_list(), micro_batches);
}

std::optional<LayoutRecord> layout_record(const RunSettings& settings, const LayoutChoice& choice) {
    if (!leaves_open(settings.options()))
        return std::nullopt;
    return LayoutRecord{question_of(settings), layout_choice_json(choice)};
}

std::optional<LayoutChoice> recorded_layout(const RunSettings& settings, const RunIdentity& saved) {
    if (!saved.layout || !leaves_open(settings.options()) ||
        saved.layout->question != question_of(settings))
        return std::nullopt;
    return parse_layout_choice(saved.layout->choice);
}

}  // namespace hetseq
