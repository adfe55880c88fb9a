#include "recursive_halving.hpp"

namespace hetseq {

std::vector<HalvingLevel> halving_levels_of(int host, int hosts) {
    std::vector<HalvingLevel> levels;
    int begin = 0;
    int end = hosts;
    while (end - begin > 1) {
        const int middle = begin + (end - begin + 1) / 2;
        const int unpaired = middle - begin > end - middle ? middle - 1 : -1;
        HalvingLevel& level = levels.emplace_back();
        if (host >= middle) {
            const int partner = begin + host - middle;
            level.gives.push_back({partner, begin, middle});
            level.gets.push_back({partner, middle, end});
            if (unpaired >= 0)
                level.gets.push_back({unpaired, host, host + 1});
            begin = middle;
            continue;
        }
        if (host == unpaired) {
            for (int other = middle; other < end; ++other)
                level.gives.push_back({other, other, other + 1});
        } else {
            const int partner = middle + host - begin;
            level.gives.push_back({partner, middle, end});
            level.gets.push_back({partner, begin, middle});
        }
        end = middle;
    }
    return levels;
}

}  // namespace hetseq
