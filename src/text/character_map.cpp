#include "character_map.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hetseq/text/utf8.hpp"

namespace hetseq {

namespace {

constexpr std::size_t size_bytes = sizeof(std::uint32_t);
constexpr std::size_t most_map_bytes = std::size_t{16}
                                       << 20;  // 70 times those of SentencePiece's rules
constexpr std::size_t longest_text = 1024;     // [bytes]
constexpr int most_matches = 32;               // of one search, for which SentencePiece has room
constexpr std::uint32_t label_count = 256;

std::uint32_t unit_at(std::string_view bytes, std::size_t index) {
    std::uint32_t unit = 0;
    for (std::size_t i = 0; i < size_bytes; ++i)
        unit |=
            static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[index * size_bytes + i]))
            << (8 * i);
    return unit;
}

// The fields of a unit of darts-clone.
bool has_value(std::uint32_t unit) {
    return (unit >> 8 & 1) != 0;
}
std::uint32_t value_of(std::uint32_t unit) {
    return unit & 0x7fffffff;
}
std::uint32_t label_of(std::uint32_t unit) {
    return unit & 0x800000ff;
}
std::uint32_t offset_of(std::uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200) >> 6);
}

/// Goes through all units that a search can come to. Units may be shared by several prefixes.
class TrieWalk {
public:
    TrieWalk(std::string_view trie, std::string_view texts)
        : texts_{texts}, units_(trie.size() / size_bytes), matches_(units_.size(), unseen) {
        for (std::size_t i = 0; i < units_.size(); ++i)
            units_[i] = unit_at(trie, i);
    }

    std::string fault() {
        std::string fault = enter(0);
        while (fault.empty() && !path_.empty())
            fault = step();
        return fault;
    }

private:
    static constexpr int unseen = -1;
    static constexpr int under_way = -2;

    struct Place {
        std::uint32_t unit;
        std::uint32_t children;   // a child by byte b is at `children` ^ b
        std::uint32_t label = 0;  // the next to look at
        int matches = 0;          // of a search from here on, at most
    };

    std::string enter(std::uint32_t unit) {
        const std::uint32_t children = unit ^ offset_of(units_[unit]);
        if ((children | (label_count - 1)) >= units_.size())
            return "the trie of its characters points outside of itself";
        if (has_value(units_[unit])) {
            const std::uint32_t begin = value_of(units_[children]);
            if (begin >= texts_.size() ||
                (static_cast<unsigned char>(texts_[begin]) & 0xc0) == 0x80)
                return "a rule of its characters points outside of the rules' text";
        }
        matches_[unit] = under_way;
        path_.push_back({unit, children});
        return {};
    }

    // Looks at one more child of the last unit on the path, or leaves it.
    std::string step() {
        Place& place = path_.back();
        while (place.label < label_count) {
            const std::uint32_t child = place.children ^ place.label;
            if (label_of(units_[child]) != place.label++)
                continue;
            if (matches_[child] == under_way)
                return "the trie of its characters has a cycle";
            if (matches_[child] == unseen) {
                --place.label;  // seen again with its matches
                return enter(child);
            }
            place.matches = std::max(place.matches, matches_[child]);
        }
        const bool is_root = path_.size() == 1;
        const int matches = place.matches + (has_value(units_[place.unit]) && !is_root ? 1 : 0);
        matches_[place.unit] = matches;
        path_.pop_back();
        return matches > most_matches ? "too many rules of its characters begin alike"
                                      : std::string{};
    }

    std::string_view texts_;
    std::vector<std::uint32_t> units_;
    std::vector<int> matches_;  // by unit
    std::vector<Place> path_;
};

bool has_long_text(std::string_view texts) {
    while (!texts.empty()) {
        const std::size_t end = texts.find('\0');
        if (end > longest_text)
            return true;
        texts.remove_prefix(end + 1);
    }
    return false;
}

}  // namespace

std::string character_map_fault(std::string_view map) {
    if (map.size() > most_map_bytes)
        return "the map of its characters has more than 16 MiB";
    if (map.size() <= size_bytes)
        return "the map of its characters is cut off";
    const std::uint32_t trie_bytes = unit_at(map, 0);
    map.remove_prefix(size_bytes);
    if (trie_bytes >= map.size() || trie_bytes < size_bytes || trie_bytes % size_bytes != 0)
        return "the trie of its characters has a wrong size";
    const std::string_view texts = map.substr(trie_bytes);
    if (texts.back() != '\0' || valid_utf8_bytes(texts) != texts.size() || has_long_text(texts))
        return "the rules of its characters hold no text";
    return TrieWalk{map.substr(0, trie_bytes), texts}.fault();
}

}  // namespace hetseq
