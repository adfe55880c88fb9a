#include "hetseq/session/pipeline/recorded_layout.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "hetseq/util/text.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
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

// Limits of a stage's rank have the stage behind them.
bool have_same_speeds(const RunSettings& settings, const RunIdentity& saved) {
    if (saved.devices.size() != settings.topology.ranks.size())
        return false;
    for (const RankInfo& info : settings.topology.ranks) {
        const auto r = static_cast<std::size_t>(info.rank);
        if (saved.devices[r] != info.device_name ||
            !saved.limits[r].starts_with(rank_limits(settings, info.rank)))
            return false;
    }
    return true;
}

}  // namespace

void record_layout(const PipelineLayout& layout, RunSettings& settings) {
    std::vector<std::string> ranks, units;
    for (std::size_t s = 0; s < layout.ranks.size(); ++s) {
        ranks.push_back(std::to_string(layout.ranks[s]));
        units.push_back(std::to_string(layout.cut.units[s].size()));
    }
    settings.settle(settings.options().virtual_workers, join(ranks, "+"));
    settings.settle(settings.options().stage_units, join(units, "+"));
    settings.settle(size_place(settings), std::to_string(layout.micro_batch));
}

std::optional<PipelineLayout> recorded_layout(const RunSettings& settings,
                                              const RunIdentity& saved) {
    const Options& options = settings.options();
    const std::string units = value_of(saved, settings, &options.stage_units);
    const std::string workers = value_of(saved, settings, &options.virtual_workers);
    if (options.virtual_workers == "none" || options.stage_units != "auto" || units.empty() ||
        units == "auto" || !have_same_speeds(settings, saved))
        return std::nullopt;
    const std::vector<int> ranks = ranks_of_worker(workers, settings.topology);
    const std::vector<std::size_t> of_stages = parse_stage_units(units);
    if (ranks.size() != of_stages.size() || ranks.size() != settings.topology.ranks.size())
        return std::nullopt;
    return given_layout(
        ranks, of_stages, std::stoll(value_of(saved, settings, &size_place(settings))));
}

}  // namespace hetseq
