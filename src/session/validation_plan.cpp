#include "hetseq/session/validation_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "hetseq/model/model.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/session/group_shares.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// A batch holds so many groups of the longest samples, or more of shorter ones, which ranks share
// out whole.
constexpr std::int64_t groups_of_a_batch = 16;

BatchSize ragged_batch(const RunSettings& settings, bool has_groups) {
    const std::int64_t longest = settings.corpus.max_length;
    if (settings.counts_samples())
        return {.samples = has_groups ? groups_of_a_batch * settings.options().norm_group
                                      : settings.batch_size().samples};
    if (has_groups)
        return {.units = groups_of_a_batch * settings.options().norm_group * longest};
    const std::int64_t tokens =
        std::accumulate(settings.capacities.begin(), settings.capacities.end(), std::int64_t{0});
    return {.units = std::max(tokens * 9 / 10, longest)};
}

}  // namespace

BatchPlan make_validation_plan(Feed& feed,
                               const Model& model,
                               const RunSettings& settings,
                               const SharePlan& shares) {
    const bool has_groups = model.has_groups(Mode::evaluate);
    const std::int64_t group = settings.options().norm_group;
    BatchPlan plan =
        feed.plan(settings.is_ragged() ? ragged_batch(settings, has_groups)
                                       : BatchSize{.samples = shares.total_capacity()});
    if (has_groups && settings.is_ragged())
        plan.set_groups(group);
    else if (has_groups)
        plan.set_groups_of_epoch(group);
    check_groups(shares, plan, "validation");
    return plan;
}

}  // namespace hetseq
