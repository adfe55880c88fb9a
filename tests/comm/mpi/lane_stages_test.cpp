#include "comm/mpi/hierarchical/lane_stages.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

TEST(HostMapTest, HostsAreNumberedByTheirLowestRanks) {
    const HostMap hosts{{5, 3, 5, 9, 3}};

    EXPECT_EQ(hosts.hosts(), 3);
    EXPECT_THAT(hosts.ranks_on(0), ElementsAre(0, 2));
    EXPECT_THAT(hosts.ranks_on(1), ElementsAre(1, 4));
    EXPECT_THAT(hosts.ranks_on(2), ElementsAre(3));
    EXPECT_EQ(hosts.host_of(4), 1);
    EXPECT_EQ(hosts.largest_host(), 2);
}

TEST(LanesTest, AHostsRanksShareTheLanesEvenly) {
    const HostMap hosts{{0, 0, 0, 0, 0, 0, 1, 2, 2, 2}};
    const Lanes lanes{hosts, 0, lane_count(hosts)};
    const auto ranks_of = [&](int host) {
        std::vector<int> ranks;
        for (int lane = 0; lane < lanes.count; ++lane)
            ranks.push_back(lanes.rank_of(host, lane));
        return ranks;
    };

    EXPECT_THAT(ranks_of(0), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(ranks_of(1), ElementsAre(6, 6, 6, 6, 6, 6));
    EXPECT_THAT(ranks_of(2), ElementsAre(7, 7, 8, 8, 9, 9));
}

TEST(LaneLayoutTest, LanesOfPiecesHoldEachElementOnce) {
    const HostMap hosts{{0, 1, 0}};
    const HostRanges ranges{hosts, {{20, 7}, {0, 11}, {40, 6}}};
    std::vector<int> seen(50, 0);

    for (std::size_t piece = 0; piece < 3; ++piece)
        for (int lane = 0; lane < 2; ++lane) {
            const LaneLayout layout{ranges, 2, piece, 3, lane, 2};
            for (int host = 0; host < 2; ++host)
                ranges.visit(host, layout.indices(host), [&](std::size_t begin, std::size_t count) {
                    for (std::size_t i = begin; i < begin + count; ++i)
                        ++seen[i];
                });
        }

    std::vector<int> expected(50, 0);
    for (const auto& [begin, length] : {ElementRange{20, 7}, {0, 11}, {40, 6}})
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(begin), length, 1);
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(ranges.total(), 24);
}

}  // namespace
}  // namespace hetseq
