#include "hetseq/session/group_shares.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/balance/allocate.hpp"
#include "hetseq/balance/divide_items.hpp"
#include "hetseq/data/order/sample_groups.hpp"

namespace hetseq {

namespace {

constexpr double little = 0.03;  // of an update's time

struct GroupShares {
    std::vector<std::int64_t> groups;   // by rank
    std::vector<std::int64_t> samples;  // by rank
    double loss = 0;                    // of time, over single samples
};

GroupShares shares_in_groups(const SharePlan& shares,
                             const std::vector<std::int64_t>& allocation,
                             std::int64_t batch,
                             std::int64_t size) {
    GlobalBatch whole{.begin = 0, .end = batch};
    whole.groups = std::make_shared<const std::vector<Slice>>(groups_of(batch, size));
    GroupShares result{.groups = divide_items(allocation, std::ssize(*whole.groups)),
                       .samples = {}};
    for (const Slice& slice : cut_by_rank(whole, allocation))
        result.samples.push_back(slice.size());
    const double single = makespan_ms(shares.costs(), allocation);
    if (single > 0)
        result.loss = std::max(0.0, makespan_ms(shares.costs(), result.samples) / single - 1);
    return result;
}

}  // namespace

void check_groups(const SharePlan& shares, const BatchPlan& plan, const std::string& of) {
    if (plan.group_size() == 0)
        return;
    const std::vector<std::int64_t>& most =
        shares.ragged() ? shares.ragged()->max_samples : shares.micro_batches();
    const std::int64_t largest = shares.ragged() ? plan.group_size() : plan.largest_group();
    for (std::size_t r = 0; r < most.size(); ++r) {
        if (most[r] == 0 || most[r] >= largest)
            continue;
        throw BadConfig("rank " + std::to_string(r) + " holds micro-batches of " +
                            std::to_string(most[r]) + " samples, less than a group of " +
                            std::to_string(largest) + " of the " + of,
                        "the model looks at groups of " + std::to_string(plan.group_size()) +
                            " samples (--norm-group), and of more where the samples are no "
                            "multiple of it, as in an epoch's last batch; no rank computes a "
                            "part of one",
                        "raise --max-sentences of this rank or give it 0, or train with a lower "
                        "--norm-group");
    }
}

std::vector<std::int64_t> shares_of_full_batch(SharePlan& shares, const BatchPlan& plan) {
    const std::int64_t batch = shares.full_batch(plan);
    const std::vector<std::int64_t> allocation = shares.allocation(batch);
    return plan.group_size() == 0 || shares.ragged()
               ? allocation
               : shares_in_groups(shares, allocation, batch, plan.group_size()).samples;
}

std::string group_report(SharePlan& shares, const BatchPlan& plan) {
    if (plan.group_size() == 0 || shares.ragged())
        return "";
    const std::int64_t batch = plan.full_batch();
    const std::vector<std::int64_t> allocation = shares.allocation(batch);
    const GroupShares now = shares_in_groups(shares, allocation, batch, plan.group_size());
    std::string counts;
    for (const std::int64_t count : now.groups)
        counts += (counts.empty() ? "" : ", ") + std::to_string(count);
    std::string text = "groups of " + std::to_string(plan.group_size()) +
                       " samples (--norm-group), by rank: " + counts;
    if (now.loss < little)
        return text + "; whole groups cost " + format_number(100 * now.loss, 2) + " % of time\n";
    text += "; whole groups cost " + format_number(100 * now.loss, 2) + " % of time";
    for (std::int64_t size = plan.group_size() - 1; size >= 2; --size) {
        const double loss = shares_in_groups(shares, allocation, batch, size).loss;
        if (loss < little)
            return text + ", groups of " + std::to_string(size) + " would cost " +
                   format_number(100 * loss, 2) + " %\n";
    }
    return text + "\n";
}

}  // namespace hetseq
