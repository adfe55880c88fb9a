#pragma once

#include <cstdint>

#include "hetseq/util/vector_clones.hpp"

#include "dropout_mask.hpp"

namespace hetseq::detail {

/// The random bits of one chunk: word w of lane l in `word[w][l]`.
struct DropoutBits {
    alignas(64) std::uint32_t word[4][DropoutMask::lanes];
};

/// Philox over all lanes of a chunk at once, written so that the compiler vectorises it over lanes.
HETSEQ_ALWAYS_INLINE void draw_chunk(const DropoutMask& mask,
                                     std::uint64_t sample,
                                     std::uint32_t chunk,
                                     DropoutBits& bits) {
    constexpr int lanes = DropoutMask::lanes;
    for (int lane = 0; lane < lanes; ++lane) {
        const PhiloxCounter counter =
            mask.counter(sample, chunk * lanes + static_cast<std::uint32_t>(lane));
        const PhiloxCounter drawn = philox4x32(counter, mask.key);
        for (int w = 0; w < 4; ++w)
            bits.word[w][lane] = drawn.word[w];
    }
}

/// Calls `apply(i, keep)` for the elements i in [0, count) of a chunk.
template <class Apply>
HETSEQ_ALWAYS_INLINE void for_each_in_chunk(const DropoutMask& mask,
                                            const DropoutBits& bits,
                                            int count,
                                            const Apply& apply) {
    for (int slot = 0; slot * DropoutMask::lanes < count; ++slot) {
        const int begin = slot * DropoutMask::lanes;
        const int shift = 16 * (slot % 2);
        const std::uint32_t* word = bits.word[slot / 2];
        if (begin + DropoutMask::lanes <= count) {
            for (int lane = 0; lane < DropoutMask::lanes; ++lane)
                apply(begin + lane, ((word[lane] >> shift) & 0xFFFFu) < mask.threshold);
        } else {
            for (int lane = 0; lane < count - begin; ++lane)
                apply(begin + lane, ((word[lane] >> shift) & 0xFFFFu) < mask.threshold);
        }
    }
}

}  // namespace hetseq::detail
