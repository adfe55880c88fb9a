#pragma once

#include <optional>
#include <vector>

#include "hetseq/comm/host/topology.hpp"
#include "hetseq/session/pipeline/layout_choice.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

struct CommandContext;
class Replica;
class RunFolder;
class SharePlan;

/// Which ranks try to train, and so what they may still leave out.
enum class Staff {
    job,     // all of the job
    well,    // without those that have no capacity, or that an earlier start found slow
    working  // without those that would be of no use, too
};

/// Ranks that try to train, and how.
struct Crew {
    Staff staff = Staff::job;
    std::optional<RankInfo> before = {};  // this rank, before others were left out
    VerifiedCheckpoint verified = {};     // before others were left out
    SettledOptions options = {};
    LayoutChoice choice = {};
    std::optional<LayoutRecord> layout = {};  // of the job's choice
};

/// Some ranks of a crew, which are to try alone: their numbers become those among them.
struct SmallerCrew {
    std::vector<int> ranks;  // ascending
    Crew crew;
};

/// Collective. Empty: the ranks of `crew` train, and its choice says in which layout, which is the
/// recorded one of the checkpoint, or is found best now. Otherwise ranks without capacity, those
/// that an earlier start found slow (--drop-below) or those that the layout has no use for are left
/// out. `settings` are those of `crew`, and learn which ranks of the job these are; `folder` may be
/// null.
std::optional<SmallerCrew> choose_crew(const CommandContext& context,
                                       Crew& crew,
                                       RunSettings& settings,
                                       const VerifiedCheckpoint& checkpoint,
                                       const RunFolder* folder);

/// Collective. Empty: all ranks are of use. Otherwise those on CPUs are left out, whose work does
/// not pay (`working_ranks`).
std::optional<SmallerCrew> without_useless_ranks(const HostComm& world,
                                                 const Crew& crew,
                                                 const RunSettings& settings,
                                                 const VerifiedCheckpoint& checkpoint,
                                                 Replica& replica,
                                                 SharePlan& shares);

}  // namespace hetseq
