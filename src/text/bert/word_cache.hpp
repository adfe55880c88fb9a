#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "text/ascii_word.hpp"

namespace hetseq {

/// The pieces of words met lately. A word has two places, beside each other; a new one pushes out
/// the older of the two. Holds no word of more than `most_ids` pieces.
class WordCache {
public:
    static constexpr std::size_t most_ids = 7;

    /// A line of the processor's cache. A free one has a key of zeros, which no word has.
    struct alignas(64) Entry {
        WordKey key;
        std::int32_t count = 0;
        std::array<std::int32_t, most_ids> ids{};
    };
    static_assert(sizeof(Entry) == 64);

    WordCache() : entries_(std::size_t{1} << bits) {}

    /// Null where the word is not there.
    const Entry* find(const WordKey& key) const {
        const Entry* entry = &entries_[place_of(key)];
        if (entry->key == key) [[likely]]
            return entry;
        return entry[1].key == key ? entry + 1 : nullptr;
    }

    void put(const WordKey& key, std::span<const std::int32_t> ids) {
        if (ids.size() > most_ids)
            return;
        Entry* entry = &entries_[place_of(key)];
        entry[1] = entry[0];
        entry->key = key;
        entry->count = static_cast<std::int32_t>(ids.size());
        std::copy(ids.begin(), ids.end(), entry->ids.begin());
    }

private:
    static constexpr int bits = 14;  // 1 MiB, within a core's own cache

    static std::size_t place_of(const WordKey& key) {
        constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
        const auto& parts = key.parts;
        const std::uint64_t mixed =
            (parts[0] * factor) ^
            std::rotl((parts[1] ^ std::rotl(parts[2], 17) ^ parts[3]) * factor, 29);
        return ((mixed * factor) >> (64 - bits)) & ~std::uint64_t{1};
    }

    std::vector<Entry> entries_;
};

}  // namespace hetseq
