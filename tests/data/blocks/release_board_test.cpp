#include "hetseq/data/blocks/release_board.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(ReleaseBoardTest, ATicketIsReleasedOnceEveryRankDid) {
    std::vector<std::byte> memory(ReleaseBoard::bytes(2));
    ReleaseBoard first{memory, 0, 2};
    ReleaseBoard second{memory, 1, 2};

    first.release(0);
    EXPECT_FALSE(second.all_released_below(1));
    second.release(0);

    EXPECT_TRUE(first.all_released_below(1));
    EXPECT_FALSE(first.all_released_below(2));
}

TEST(ReleaseBoardTest, TicketsMayComeOutOfOrder) {
    std::vector<std::byte> memory(ReleaseBoard::bytes(1));
    ReleaseBoard board{memory, 0, 1};

    board.release(2);
    board.release(1);
    EXPECT_FALSE(board.all_released_below(1));
    board.release(0);

    EXPECT_TRUE(board.all_released_below(3));
}

}  // namespace
}  // namespace hetseq
