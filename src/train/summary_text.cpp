#include <algorithm>
#include <map>

#include "hetseq/util/text.hpp"
#include "hetseq/train/advice.hpp"
#include "hetseq/train/statistics.hpp"
#include "hetseq/train/summary.hpp"
#include "hetseq/train/trainer.hpp"

namespace hetseq {

namespace {

using Rows = std::vector<std::vector<std::string>>;

// "min / avg / max" over the ranks of a class.
std::string spread_over(const std::vector<const Summary::Rank*>& ranks,
                        double Summary::Rank::*phase) {
    double least = ranks.front()->*phase;
    double most = least;
    double sum = 0;
    for (const Summary::Rank* rank : ranks) {
        least = std::min(least, rank->*phase);
        most = std::max(most, rank->*phase);
        sum += rank->*phase;
    }
    return format_number(least, 3) + " / " +
           format_number(sum / static_cast<double>(ranks.size()), 3) + " / " +
           format_number(most, 3);
}

// CPUs of one name may have unlike quotas, so that theirs are a class for each host.
std::string class_of(const Summary::Rank& rank) {
    return rank.is_gpu ? rank.device : rank.device + " of " + rank.host;
}

std::string class_table(const std::vector<Summary::Rank>& ranks) {
    std::map<std::string, std::vector<const Summary::Rank*>> classes;
    for (const Summary::Rank& rank : ranks)
        classes[class_of(rank)].push_back(&rank);
    Rows rows{{"ms an update: min / avg / max",
               "ranks",
               "units",
               "data",
               "forward+backward",
               "wait",
               "reduce",
               "optimizer"}};
    for (const auto& [name, members] : classes) {
        std::int64_t units = 0;
        for (const Summary::Rank* rank : members)
            units += rank->units;
        rows.push_back({name,
                        std::to_string(members.size()),
                        std::to_string(units),
                        spread_over(members, &Summary::Rank::data_ms),
                        spread_over(members, &Summary::Rank::compute_ms),
                        spread_over(members, &Summary::Rank::wait_ms),
                        spread_over(members, &Summary::Rank::reduce_ms),
                        spread_over(members, &Summary::Rank::optimizer_ms)});
    }
    return format_table(rows);
}

std::string balance_text(const Summary& summary) {
    if (!summary.bound_ms)
        return "";
    return "balance " + summary.policy + " [ms an update]: equal split " +
           format_number(*summary.equal_ms, 3) + ", in proportion to the rates " +
           format_number(*summary.proportional_ms, 3) + ", as cut " +
           format_number(*summary.predicted_ms, 3) + ", bound " +
           format_number(*summary.bound_ms, 3) + "; measured " + format_number(summary.step_ms, 3) +
           "\n" + format_number(100 * *summary.achieved(), 3) +
           " % of the bound reached, communication took " +
           format_number(100 * summary.communication_share(), 2) + " % of an update\n";
}

}  // namespace

std::string Summary::text(const TrainerReport& report) const {
    const Spread step = spread_of(report.step_ms);
    std::string text = status + ": " + std::to_string(report.updates) + " updates, " +
                       std::to_string(report.epochs) + " epochs, " + format_duration(seconds) +
                       " (first update after " + format_number(startup_s, 3) + " s)\n" +
                       format_number(samples_per_second) + " samples/s, step " +
                       format_number(step_ms, 3) + " ms (" + format_number(step.p10, 3) + " to " +
                       format_number(step.p90, 3) + ")\n" + balance_text(*this) +
                       class_table(ranks);
    for (const std::string& line : advice(*this))
        text += line + "\n";
    return text;
}

}  // namespace hetseq
