#include "hetseq/util/option_value.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

template <class Read>
std::string error_of(Read read) {
    try {
        read();
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "no error";
}

TEST(OptionValueTest, BoundsAreAmongTheValues) {
    EXPECT_EQ(option_value::whole_number("3", 3, 5), 3);
    EXPECT_EQ(option_value::whole_number("5", 3, 5), 5);
    EXPECT_EQ(option_value::number("0.25", 0.25, 1), 0.25);
    EXPECT_EQ(option_value::number("1e300"), 1e300);
    EXPECT_EQ(option_value::fraction("0"), 0);
    EXPECT_EQ(option_value::positive("1e-300"), 1e-300);
    EXPECT_EQ(option_value::choice("b", {"a", "b"}), "b");
    EXPECT_TRUE(option_value::is_on("yes"));
    EXPECT_FALSE(option_value::is_on("0"));
}

TEST(OptionValueTest, SaysWhatWasExpected) {
    EXPECT_EQ(error_of([] { option_value::whole_number("6", 3, 5); }),
              "'6' is not a whole number from 3 to 5");
    EXPECT_EQ(error_of([] { option_value::whole_number("4x", 3, 5); }),
              "'4x' is not a whole number from 3 to 5");
    EXPECT_EQ(error_of([] { option_value::number("-1"); }), "'-1' is not a number from 0 up");
    EXPECT_EQ(error_of([] { option_value::number("inf"); }), "'inf' is not a number from 0 up");
    EXPECT_EQ(error_of([] { option_value::number("", 0, 2); }), "'' is not a number from 0 to 2");
    EXPECT_EQ(error_of([] { option_value::positive("0"); }), "'0' is not a number above 0");
    EXPECT_EQ(error_of([] { option_value::fraction("1"); }),
              "'1' is not a number from 0 to below 1");
    EXPECT_EQ(error_of([] { option_value::is_on("on"); }), "'on' is not true or false");
    EXPECT_EQ(error_of([] { option_value::choice("c", {"a", "b"}); }), "'c' is not one of a, b");
}

}  // namespace
}  // namespace hetseq
