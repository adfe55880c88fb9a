#include "hetseq/util/quantity.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(CountTextTest, OneIsNoPlural) {
    EXPECT_EQ(count_text(0, "epoch"), "0 epochs");
    EXPECT_EQ(count_text(1, "epoch"), "1 epoch");
    EXPECT_EQ(count_text(2, "epoch"), "2 epochs");
}

TEST(PercentTextTest, WhatRoundingLeavesIsNothing) {
    EXPECT_EQ(percent_text(0.34721), "34.7 %");
    EXPECT_EQ(percent_text(0.34721, 2), "35 %");
    EXPECT_EQ(percent_text(2.79e-17), "0 %");
    EXPECT_EQ(percent_text(-2.79e-17), "0 %");
    EXPECT_EQ(percent_text(0), "0 %");
    EXPECT_EQ(percent_text(1), "100 %");
}

}  // namespace
}  // namespace hetseq
