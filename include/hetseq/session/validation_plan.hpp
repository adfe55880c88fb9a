#pragma once

#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

class Feed;
class Model;
class SharePlan;
struct RunSettings;

/// The batches of a validation over `feed`'s samples, each about one micro-batch of every rank. Of
/// a model that looks at groups of samples, the groups do not depend on the ranks: those of all
/// samples, or, where samples have unequal lengths, of batches of a size that is their own. Throws
/// BadConfig if a rank's micro-batches hold less than a group.
BatchPlan make_validation_plan(Feed& feed,
                               const Model& model,
                               const RunSettings& settings,
                               const SharePlan& shares);

}  // namespace hetseq
