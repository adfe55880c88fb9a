#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/util/owned_range.hpp"

namespace hetseq::test {

/// Ranges of these lengths, owned in turn by `owners`; those of length 0 are left out.
inline std::vector<OwnedRange> ranges_of(const std::vector<std::int64_t>& lengths,
                                         const std::vector<int>& owners) {
    std::vector<OwnedRange> ranges;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] > 0)
            ranges.push_back({owners[i], begin, lengths[i]});
        begin += lengths[i];
    }
    return ranges;
}

/// Ways to cut `count` elements over `ranks`: evenly; all to the first, or to the last; unequally,
/// with nothing for the first; and in many ranges, several for each, in an order of their own.
inline std::vector<std::vector<OwnedRange>> cuts_of(std::int64_t count, int ranks) {
    std::vector<std::int64_t> even, unequal, many;
    std::vector<int> all, many_owners;
    std::int64_t even_end = 0, unequal_end = 0, many_end = 0;
    for (int r = 0; r < ranks; ++r) {
        all.push_back(r);
        even.push_back(count * (r + 1) / ranks - even_end);
        even_end += even.back();
        const std::int64_t squares = std::int64_t{ranks - 1} * (ranks - 1);
        unequal.push_back(ranks == 1 ? count : count * r * r / squares - unequal_end);
        unequal_end += unequal.back();
    }
    constexpr int turns = 5;
    for (int i = 0; i < turns * ranks; ++i) {
        many.push_back(count * (i + 1) * (i + 2) / (turns * ranks * (turns * ranks + 1)) -
                       many_end);
        many_end += many.back();
        many_owners.push_back((i * 2 + i / ranks) % ranks);
    }
    return {ranges_of(even, all),
            ranges_of({count}, {0}),
            ranges_of({count}, {ranks - 1}),
            ranges_of(unequal, all),
            ranges_of(many, many_owners)};
}

}  // namespace hetseq::test
