#include "hetseq/train/advice.hpp"

#include <algorithm>
#include <map>

#include "hetseq/util/text.hpp"
#include "hetseq/train/summary.hpp"

namespace hetseq {

namespace {

// Shares of an update's time from which on something is worth a word.
constexpr double idling = 0.1;
constexpr double communicating = 0.15;
constexpr double loading = 0.05;

std::string percent(double share) {
    return format_number(100 * share, 2) + " %";
}

struct Host {
    double idle_share = 1;  // of an update, of its least idle rank
    double unit_ms = 0;     // of that rank
    std::int64_t units = 0;
};

std::map<std::string, Host> hosts_of(const Summary& summary) {
    std::map<std::string, Host> hosts;
    for (const Summary::Rank& rank : summary.ranks) {
        Host& host = hosts[rank.host];
        if (rank.wait_ms / summary.step_ms <= host.idle_share) {
            host.idle_share = rank.wait_ms / summary.step_ms;
            host.unit_ms = rank.unit_ms;
        }
        host.units += rank.units;
    }
    return hosts;
}

std::string why_idle(const Summary& summary, const Host& host) {
    if (summary.policy != "auto")
        return "batches are not cut by measured speed; --balance auto does that";
    if (summary.communication_share() > idling)
        return "its link, not its device, is the limit";
    if (host.unit_ms < host.idle_share * summary.step_ms)
        return "it was faster than when its share was cut, or another rank slower; shares follow "
               "what lasts";
    return "a sample more would take it longer than the others wait; a larger --batch-size would "
           "fill it";
}

}  // namespace

std::vector<std::string> advice(const Summary& summary) {
    std::vector<std::string> lines;
    if (summary.ranks.size() < 2 || summary.step_ms <= 0)
        return lines;
    const double communication = summary.communication_share();
    for (const auto& [name, host] : hosts_of(summary)) {
        if (host.units == 0)
            lines.push_back(name + " had no work: at this batch size it is too slow to pay");
        else if (host.idle_share - communication > idling)
            lines.push_back(name + " idles " + percent(host.idle_share) +
                            " of each update: " + why_idle(summary, host));
    }
    if (communication > communicating)
        lines.push_back("communication takes " + percent(communication) +
                        " of each update on every rank: a larger --batch-size or fewer hosts would "
                        "lose less");
    for (const Summary::Rank& rank : summary.ranks)
        if (rank.data_ms > loading * summary.step_ms)
            lines.push_back("rank " + std::to_string(rank.rank) + " waits " +
                            percent(rank.data_ms / summary.step_ms) +
                            " of each update for data: raise --cache-mb, or give loading a core");
    return lines;
}

}  // namespace hetseq
