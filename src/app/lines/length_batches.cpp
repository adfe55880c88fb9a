#include "length_batches.hpp"

#include <algorithm>
#include <numeric>

namespace hetseq {

std::vector<std::vector<std::size_t>> cut_batches(const std::vector<std::int64_t>& lengths,
                                                  const BatchCaps& caps) {
    std::vector<std::size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return lengths[a] > lengths[b];
    });
    std::vector<std::vector<std::size_t>> batches;
    std::int64_t tokens = 0;
    for (const std::size_t i : order) {
        const bool is_full = batches.empty() ||
                             static_cast<std::int64_t>(batches.back().size()) == caps.sentences ||
                             tokens + lengths[i] > caps.tokens;
        if (is_full) {
            batches.emplace_back();
            tokens = 0;
        }
        batches.back().push_back(i);
        tokens += lengths[i];
    }
    return batches;
}

}  // namespace hetseq
