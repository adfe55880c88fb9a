#include "crew.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "hetseq/util/log.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/session/pipeline/choose_layout.hpp"
#include "hetseq/session/pipeline/recorded_layout.hpp"
#include "hetseq/session/ranks/slow_devices.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/working_ranks.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

namespace {

// Where the run's earlier starts are told of; empty: there are none.
std::filesystem::path earlier_starts(const RunFolder* folder, const Options& options) {
    return folder == nullptr || options.overwrite ? "" : folder->history();
}

SmallerCrew crew_of(const std::vector<int>& ranks,
                    Staff staff,
                    SettledOptions options,
                    const RankInfo& before,
                    const VerifiedCheckpoint& checkpoint) {
    return {.ranks = ranks,
            .crew = {.staff = staff,
                     .before = before,
                     .verified = checkpoint,
                     .options = std::move(options)}};
}

SmallerCrew crew_of_layout(LayoutChoice choice,
                           const std::optional<LayoutRecord>& record,
                           const RunSettings& settings,
                           int rank,
                           const VerifiedCheckpoint& checkpoint) {
    const std::vector<int>& ranks = choice.ranks;
    if (choice.pipelines)
        choice.pipelines->renumber(ranks);
    std::vector<int> others;
    for (const RankInfo& info : settings.topology.ranks)
        if (!std::binary_search(ranks.begin(), ranks.end(), info.rank))
            others.push_back(info.rank);
    if (!others.empty())
        log::info("left out: " + name_ranks(others) +
                  ", for which the layout has no use; the others are numbered anew, from 0 on");
    SmallerCrew next = crew_of(ranks,
                               Staff::working,
                               options_in_layout(settings, ranks),
                               settings.topology.rank(rank),
                               checkpoint);
    if (choice.shards_state)
        next.crew.options.settle(next.crew.options.options().shard, "optimizer");
    next.crew.choice = std::move(choice);
    next.crew.layout = record;
    return next;
}

// Collective. As the run's checkpoint has recorded it, or as it is found best now.
LayoutChoice chosen_layout(const CommandContext& context,
                           const RunSettings& settings,
                           const std::optional<ResumePoint>& point,
                           bool saves) {
    return choose_layout(
        *context.environment,
        context.world,
        settings,
        context.parts,
        saves,
        point && point->is_own ? recorded_layout(settings, point->state.run) : std::nullopt);
}

}  // namespace

std::optional<SmallerCrew> choose_crew(const CommandContext& context,
                                       Crew& crew,
                                       RunSettings& settings,
                                       const VerifiedCheckpoint& checkpoint,
                                       const RunFolder* folder) {
    const HostComm& world = context.world;
    if (crew.staff == Staff::working) {
        settings.layout = crew.layout;
        return std::nullopt;
    }
    if (crew.staff == Staff::job && !context.parts.is_called_by_script) {
        const std::vector<int> ranks = ranks_with_capacity(
            settings,
            ranks_not_dropped(world, settings, earlier_starts(folder, settings.options())));
        if (std::ssize(ranks) < world.size())
            return crew_of(ranks,
                           Staff::well,
                           options_on(settings, ranks),
                           settings.topology.rank(world.rank()),
                           checkpoint);
    }
    crew.choice = chosen_layout(context, settings, checkpoint.point, folder != nullptr);
    settings.layout = crew.layout = layout_record(settings, crew.choice);
    if (std::ssize(crew.choice.ranks) < world.size() || crew.choice.shards_state)
        return crew_of_layout(
            std::move(crew.choice), crew.layout, settings, world.rank(), checkpoint);
    return std::nullopt;
}

std::optional<SmallerCrew> without_useless_ranks(const HostComm& world,
                                                 const Crew& crew,
                                                 const RunSettings& settings,
                                                 const VerifiedCheckpoint& checkpoint,
                                                 Replica& replica,
                                                 SharePlan& shares) {
    if (crew.staff == Staff::working || crew.choice.pipelines ||
        replica.model().initialises_itself())
        return std::nullopt;
    const std::vector<int> ranks = working_ranks(world, settings, replica, shares);
    if (std::ssize(ranks) == world.size())
        return std::nullopt;
    SmallerCrew next = crew_of(ranks,
                               Staff::working,
                               options_on(settings, ranks),
                               settings.topology.rank(world.rank()),
                               checkpoint);
    next.crew.choice = crew.choice;
    next.crew.choice.ranks = ranks;
    next.crew.layout = crew.layout;
    if (next.crew.layout)
        next.crew.layout->choice = layout_choice_json(next.crew.choice);
    return next;
}

}  // namespace hetseq
