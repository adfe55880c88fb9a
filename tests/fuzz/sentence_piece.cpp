// SentencePiece models and their maps of characters: no search leaves a map that is accepted.
#include <cstring>
#include <string>

#include "fuzz/fuzz.hpp"
#include "text/character_map.hpp"
#include "text/subwords/sentence_piece_model.hpp"

using namespace hetseq;

namespace {

constexpr std::size_t unit_bytes = 4;
constexpr int room = 32;  // for the matches of one search

std::uint32_t unit_at(std::string_view trie, std::size_t index) {
    FUZZ_CHECK(index < trie.size() / unit_bytes);
    std::uint32_t unit = 0;
    std::memcpy(&unit, trie.data() + index * unit_bytes, unit_bytes);
    return unit;
}

std::size_t offset_of(std::uint32_t unit) {
    return std::size_t{unit >> 10} << ((unit & 0x200) >> 6);
}

// As darts-clone searches, and SentencePiece takes the text of a match up to its 0.
void search(std::string_view trie, std::string_view texts, std::string_view key) {
    std::size_t place = offset_of(unit_at(trie, 0));
    int matches = 0;
    for (const char c : key) {
        place ^= static_cast<unsigned char>(c);
        const std::uint32_t unit = unit_at(trie, place);
        if ((unit & 0x800000ff) != static_cast<unsigned char>(c))
            return;
        place ^= offset_of(unit);
        if ((unit >> 8 & 1) == 0)
            continue;
        FUZZ_CHECK(texts.find('\0', unit_at(trie, place) & 0x7fffffff) != std::string_view::npos);
        FUZZ_CHECK(++matches <= room);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes = fuzz::text_of(data, size);
    fuzz::parsed([&] {
        check_sentence_piece_model(bytes, "model");
        return true;
    });
    if (!character_map_fault(bytes).empty())
        return 0;
    const std::size_t trie_bytes = unit_at(bytes, 0);
    const std::string_view trie = bytes.substr(unit_bytes, trie_bytes);
    const std::string_view texts = bytes.substr(unit_bytes + trie_bytes);
    for (std::size_t at = 0; at < size; ++at)
        search(trie, texts, bytes.substr(at));
    for (int byte = 0; byte < 256; ++byte)
        search(trie, texts, std::string(64, static_cast<char>(byte)));
    return 0;
}
