// The trie against a search through all pieces.
#include "text/piece_trie.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Root = PieceTrie::Root;

std::string random_text(std::mt19937& source, std::size_t most, int letters) {
    std::string text;
    for (std::size_t size = 1 + source() % most; size > 0; --size)
        text += static_cast<char>(source() % static_cast<unsigned>(letters));
    return text;
}

PieceTrie::Match slow_longest(const std::vector<std::string>& pieces, std::string_view text) {
    PieceTrie::Match match;
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (text.starts_with(pieces[i]) && pieces[i].size() > match.bytes)
            match = {pieces[i].size(), static_cast<std::int32_t>(i)};
    return match;
}

std::vector<std::string> random_pieces(std::mt19937& source, int letters) {
    std::set<std::string> pieces;
    for (int i = 0; i < 300; ++i)
        pieces.insert(random_text(source, 6, letters));
    return {pieces.begin(), pieces.end()};
}

std::vector<PieceTrie::Piece> numbered(const std::vector<std::string>& texts) {
    std::vector<PieceTrie::Piece> pieces;
    for (std::size_t i = 0; i < texts.size(); ++i)
        pieces.emplace_back(texts[i], static_cast<std::int32_t>(i));
    return pieces;
}

TEST(PieceTrieTest, FindsWhatASearchThroughAllFinds) {
    std::mt19937 source{1};
    for (const int letters : {2, 3, 26, 256}) {
        const std::vector<std::string> first = random_pieces(source, letters);
        const std::vector<std::string> continuing = random_pieces(source, letters);
        const PieceTrie trie{numbered(first), numbered(continuing)};
        for (int i = 0; i < 2000; ++i) {
            const std::string text = random_text(source, 12, letters);
            const PieceTrie::Match found = trie.longest(Root::first, text);
            const PieceTrie::Match expected = slow_longest(first, text);
            ASSERT_EQ(found.bytes, expected.bytes);
            ASSERT_EQ(found.id, expected.id);
            ASSERT_EQ(trie.longest(Root::continuing, text).id, slow_longest(continuing, text).id);
        }
    }
}

TEST(PieceTrieTest, WithoutPiecesNothingIsFound) {
    const PieceTrie trie{{}, {}};

    EXPECT_EQ(trie.longest(Root::first, "a").bytes, 0U);
    EXPECT_EQ(trie.longest(Root::continuing, "\xff").id, -1);
    EXPECT_EQ(trie.longest(Root::first, "").bytes, 0U);
}

}  // namespace
}  // namespace hetseq
