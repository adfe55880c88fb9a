#include "hetseq/comm/host/rank_ranges.hpp"

namespace hetseq {

std::string rank_ranges(const std::vector<int>& ranks) {
    std::string text;
    for (std::size_t begin = 0; begin < ranks.size();) {
        std::size_t end = begin + 1;
        while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
            ++end;
        text += (text.empty() ? "" : ", ") + std::to_string(ranks[begin]);
        if (end - begin > 1)
            text += (end - begin > 2 ? "-" : ", ") + std::to_string(ranks[end - 1]);
        begin = end;
    }
    return text;
}

std::string name_ranks(const std::vector<int>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + rank_ranges(ranks);
}

}  // namespace hetseq
