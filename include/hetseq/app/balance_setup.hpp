#pragma once

#include <string>
#include <vector>

#include "hetseq/train/allocation_log.hpp"
#include "hetseq/train/share_plan.hpp"

namespace hetseq {

class Corpus;
class FlatParameters;
class HostComm;
class Loader;
class Model;
struct RankSetup;

/// What the first updates are measured on.
struct CalibrationSubject {
    Model& model;
    FlatParameters& parameters;
    Corpus& corpus;
    Loader& loader;
    const BatchPlan& plan;
    std::string beside;  // what else has its memory already
};

/// What --balance file: repeats; nothing for another balance. Throws on all ranks.
RecordedAllocations replayed_allocations(const HostComm& world, const RankSetup& setup);

/// Collective. How batches are cut, as --balance says; "auto" measures the ranks whose cost
/// --cache-dir does not hold, unless all of them are `known` (by rank).
SharePlan make_shares(const HostComm& world,
                      const RankSetup& setup,
                      const RecordedAllocations& recorded,
                      const CalibrationSubject& subject,
                      std::vector<StepCost> known);

}  // namespace hetseq
