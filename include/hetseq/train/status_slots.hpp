#pragma once

#include <cstdint>

namespace hetseq {

/// The slots behind the flat gradients that are summed over ranks with the last bucket.
namespace status_slot {

constexpr std::int64_t out_of_memory = 0;  // ranks that ran out of memory
constexpr std::int64_t non_finite = 1;     // ranks with a loss that is not finite
constexpr std::int64_t first_loss = 2;     // then one normalised loss, S_j / W_j, for each term

constexpr std::int64_t count(std::int64_t loss_terms) {
    return first_loss + loss_terms;
}

}  // namespace status_slot

/// The decision of all ranks about an update whose gradients are summed.
enum class Verdict { apply, skip, repeat };

}  // namespace hetseq
