#include "hetseq/options/option.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/task/part_options.hpp"

namespace hetseq {
namespace {

TEST(OptionTest, ReadsWhatWasGivenOrTheDefault) {
    const auto width = whole_number_option("width", "64", "");
    PartOptions options;

    EXPECT_EQ(options.get(width), 64);
    options.own["width"] = "7";
    EXPECT_EQ(options.get(width), 7);
}

TEST(OptionTest, RefusesTextsOutOfItsRange) {
    const auto share = number_option("share", "0", "", 0, 1);
    const auto width = whole_number_option("width", "1", "", 1, 9);
    const auto factor = positive_number_option("factor", "1", "");
    const auto part = fraction_option("part", "0", "");
    const auto kind = choice_option("kind", {"round", "square"}, "round", "");
    const auto on = switch_option("on", "");

    for (const char* text : {"", "x", "0.5x", "-0.1", "1.1", "nan", "inf"})
        EXPECT_THROW(share.read(text), BadConfig) << text;
    for (const char* text : {"", "0", "10", "1.5", "99999999999999999999"})
        EXPECT_THROW(width.read(text), BadConfig) << text;
    EXPECT_THROW(kind.read("oval"), BadConfig);
    EXPECT_THROW(on.read("maybe"), BadConfig);
    EXPECT_THROW(factor.read("0"), BadConfig);
    EXPECT_THROW(part.read("1"), BadConfig);
    EXPECT_EQ(factor.read("1e-9"), 1e-9);
    EXPECT_EQ(part.read("0.999"), 0.999);
    EXPECT_EQ(share.read("1"), 1);
    EXPECT_EQ(width.read("9"), 9);
    EXPECT_EQ(kind.read("square"), "square");
    EXPECT_TRUE(on.read("yes"));
}

TEST(OptionTest, RefusesADefaultThatItWouldNotTake) {
    EXPECT_THROW(number_option("share", "2", "", 0, 1), InternalError);
    EXPECT_THROW(choice_option("kind", {"round"}, "oval", ""), InternalError);
}

TEST(OptionTest, ALengthOfTimeIsInSeconds) {
    const auto time = duration_option("time", "");

    EXPECT_EQ(time.read(""), 0);
    EXPECT_EQ(time.read("0:00:01"), 1);
    EXPECT_EQ(time.read("23:55:09"), 23 * 3600 + 55 * 60 + 9);
    EXPECT_EQ(time.read("1-12:00:00"), 36 * 3600);
    EXPECT_EQ(time.read("100:59:59"), 100 * 3600 + 3599);
    for (const char* text : {"1",
                             "1:00",
                             "1:60:00",
                             "1:00:60",
                             "1:0:00",
                             "-1:00:00",
                             "1-",
                             "1-1:00",
                             "1:00:00:00",
                             "1000:00:00",
                             "a:00:00",
                             "1-2-3:00:00",
                             " 1:00:00"})
        EXPECT_THROW(time.read(text), BadConfig) << text;
}

}  // namespace
}  // namespace hetseq
