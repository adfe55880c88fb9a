#include "comm/host/host_ranges.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(HostRangesTest, ConsecutiveNumbersAreShortenedAsSlurmDoes) {
    EXPECT_EQ(host_ranges({"gpu01", "gpu02", "gpu05", "big"}), "gpu[01-02,05], big");
    EXPECT_EQ(host_ranges({"n10", "n9", "n11"}), "n[10-11], n9");
}

TEST(HostRangesTest, ASingleHostKeepsItsName) {
    EXPECT_EQ(host_ranges({"node07"}), "node07");
    EXPECT_EQ(host_ranges({"login.cluster.edu"}), "login.cluster.edu");
    EXPECT_EQ(host_ranges({"42"}), "42");
}

TEST(HostRangesTest, NumbersTooLongToCountStayPartOfTheName) {
    EXPECT_EQ(host_ranges({"job20240101000001", "job20240101000002"}),
              "job20240101000001, job20240101000002");
}

}  // namespace
}  // namespace hetseq
