#include "hetseq/session/ranks/own_choice.hpp"

#include <map>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

void warn_of_competing_entries(const HostComm& world,
                               const std::string& option,
                               const std::string& entries) {
    const std::vector<std::string> texts = world.all_gather(entries);
    std::map<std::string, std::vector<int>> ranks;
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
        if (!texts[rank].empty())
            ranks[texts[rank]].push_back(static_cast<int>(rank));
    for (const auto& [text, own] : ranks)
        log::warn("--" + option + ": " + text + " both fit " + name_ranks(own) +
                  " (the first one counts): if that is not meant, change one of them");
}

}  // namespace hetseq
