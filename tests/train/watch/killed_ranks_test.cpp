#include "hetseq/train/watch/killed_ranks.hpp"

#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Ranks 0, 1 and 4 of a machine, with the processes 100, 101 and 104. Rank 1 is in a container of
// its own.
class KilledRanksTest : public testing::Test {
protected:
    KilledRanks seen_by(int own) {
        return {
            {{0, 100, "h1"}, {1, 101, "h2"}, {4, 104, "h1"}},
            own,
            {[this](int process) { return alive_.count(process) > 0; }, [this] { return kills_; }}};
    }

    std::set<int> alive_{100, 101, 104};
    std::int64_t kills_ = 3;
};

TEST_F(KilledRanksTest, ARankIsNamedOnceByTheLowestThatLives) {
    KilledRanks at_zero = seen_by(0);
    KilledRanks at_four = seen_by(4);
    EXPECT_THAT(at_zero.look(), IsEmpty());

    alive_.erase(101);
    kills_ = 4;

    EXPECT_THAT(at_zero.look(), HasSubstr("rank 1 on h2 is gone"));
    EXPECT_THAT(at_zero.look(), IsEmpty());
    EXPECT_THAT(at_four.look(), IsEmpty());
}

TEST_F(KilledRanksTest, WhereTheLowestIsGoneTheNextOneSpeaks) {
    KilledRanks at_one = seen_by(1);

    alive_ = {101};
    kills_ = 5;

    EXPECT_THAT(at_one.look(), HasSubstr("ranks 0, 4 on h1 are gone"));
}

TEST_F(KilledRanksTest, RanksOfSeveralContainersAreNamedWithTheirs) {
    KilledRanks at_four = seen_by(4);

    alive_ = {104};
    kills_ = 5;

    EXPECT_THAT(at_four.look(), HasSubstr("rank 0 on h1 and rank 1 on h2 are gone"));
}

TEST_F(KilledRanksTest, ARankThatLeavesOtherwiseIsNotNamed) {
    KilledRanks at_zero = seen_by(0);
    alive_.erase(101);
    EXPECT_THAT(at_zero.look(), IsEmpty());

    kills_ = 4;
    alive_.insert(101);
    EXPECT_THAT(at_zero.look(), IsEmpty()) << "a process of somebody else";
}

TEST(MakeKilledRanksTest, RanksThatRunAreNotNamed) {
    const HostComm world = test::world();
    KilledRanks killed_ranks = make_killed_ranks(world);
    EXPECT_THAT(killed_ranks.look(), IsEmpty());
}

}  // namespace
}  // namespace hetseq
