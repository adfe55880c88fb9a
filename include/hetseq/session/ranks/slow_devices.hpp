#pragma once

#include <filesystem>
#include <vector>

#include "hetseq/train/record/speed_watch.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

class HostComm;
class Replica;

/// The ranks whose speeds a run watches: those that each have a whole model.
SpeedWatchOptions speed_watch(const RunSettings& settings, const Replica& replica);

/// Collective. The ranks to train with: all but those whose device an earlier start of the run, of
/// the last 24 hours, found slower than --drop-below of its kind. Says so if ranks are left out.
/// `history`: of the run's starts; empty: there is none.
std::vector<int> ranks_not_dropped(const HostComm& world,
                                   const RunSettings& settings,
                                   const std::filesystem::path& history);

}  // namespace hetseq
