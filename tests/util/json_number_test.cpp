#include "hetseq/util/json_number.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using nlohmann::json;

TEST(JsonNumberTest, TakesWholeNumbersWithinLimits) {
    EXPECT_EQ(json_integer(json::parse("-3"), -3, 5), -3);
    EXPECT_EQ(json_integer(json::parse("9223372036854775807"), 0, INT64_MAX), INT64_MAX);
    for (const char* other :
         {"6", "-4", "1.0", "true", "null", "\"1\"", "[1]", "1e3", "18446744073709551615"})
        EXPECT_THROW(json_integer(json::parse(other), -3, 5), BadData) << other;
    EXPECT_THROW(json_integer(json::parse("18446744073709551615"), INT64_MIN, INT64_MAX), BadData);
}

TEST(JsonNumberTest, TakesNumbersWithinLimits) {
    EXPECT_EQ(json_number(json::parse("0.5"), 0, 1), 0.5);
    EXPECT_EQ(json_number(json::parse("1"), 0, 1), 1);
    for (const json& other : {json(1.5), json(-0.5), json(true), json("1"), json(std::nan(""))})
        EXPECT_THROW(json_number(other, 0, 1), BadData) << other;
}

TEST(JsonNumberTest, QuotesNoMoreThanOneValue) {
    EXPECT_EQ(brief_json(json::parse("[[1]]")), "an array");
    EXPECT_EQ(brief_json(json::parse("{}")), "an object");
    EXPECT_EQ(brief_json(json::parse("1.5")), "1.5");
}

}  // namespace
}  // namespace hetseq
