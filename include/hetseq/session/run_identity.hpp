#pragma once

#include "hetseq/state/training_state.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

class Replica;

/// The identity of the run on this job's ranks. Its `schedule_updates` is left at 0.
RunIdentity run_identity(const RunSettings& settings, const Replica& replica);

/// True if both runs cut the same batches over as many ranks.
bool have_same_batches(const RunIdentity& a, const RunIdentity& b);

/// True if both runs have the same devices with the same limits, by rank, so that their speeds are
/// the same.
bool have_same_ranks(const RunIdentity& a, const RunIdentity& b);

}  // namespace hetseq
