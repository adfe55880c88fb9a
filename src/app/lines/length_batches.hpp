#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetseq {

/// What one batch may hold.
struct BatchCaps {
    std::int64_t sentences = 64;
    std::int64_t tokens = 4096;  // of the sources; a longer one is a batch by itself
};

/// Batches of sentences with these lengths, as indices: longest first, equal ones in their order.
/// A function of its arguments alone.
std::vector<std::vector<std::size_t>> cut_batches(const std::vector<std::int64_t>& lengths,
                                                  const BatchCaps& caps);

}  // namespace hetseq
