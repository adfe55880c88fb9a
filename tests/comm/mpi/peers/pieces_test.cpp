#include "comm/mpi/peers/pieces.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(PiecesTest, CoverAllStretchesInOrder) {
    std::vector<std::byte> first(25), second(10), third(1);
    Pieces<std::byte> pieces{10};

    pieces.add(first);
    pieces.add({});
    pieces.add(second);
    pieces.add(third);

    const std::vector<std::span<std::byte>> expected{
        {first.data(), 10}, {first.data() + 10, 10}, {first.data() + 20, 5}, second, third};
    for (const std::span<std::byte>& piece : expected) {
        ASSERT_FALSE(pieces.empty());
        const std::span<std::byte> taken = pieces.take();
        EXPECT_EQ(taken.data(), piece.data());
        EXPECT_EQ(taken.size(), piece.size());
    }
    EXPECT_TRUE(pieces.empty());
}

TEST(PiecesTest, NothingHasNoPiece) {
    Pieces<const std::byte> pieces{10};
    pieces.add({});
    EXPECT_TRUE(pieces.empty());
}

}  // namespace
}  // namespace hetseq
