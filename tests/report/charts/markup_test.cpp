#include "hetseq/report/charts/markup.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";

TEST(MarkupTest, WhatMeansSomethingInHtmlIsEscaped) {
    EXPECT_EQ(escaped("<a href=\"x\">&'</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;");
}

TEST(MarkupTest, Utf8Stays) {
    const std::string text = "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x9A\x80";

    EXPECT_EQ(escaped(text), text);
}

// Cut off, overlong, a surrogate, beyond U+10FFFF, a continuation alone, no character.
TEST(MarkupTest, WhatIsNoUtf8IsReplaced) {
    EXPECT_EQ(escaped("a\xE2\x82"), std::string("a") + replacement + replacement);
    EXPECT_EQ(escaped("\xC0\xAF"), std::string(replacement) + replacement);
    EXPECT_EQ(escaped("\xED\xA0\x80"), std::string(replacement) + replacement + replacement);
    EXPECT_EQ(escaped("\xF4\x90\x80\x80").substr(0, 3), replacement);
    EXPECT_EQ(escaped("\x80z"), std::string(replacement) + "z");
    EXPECT_EQ(escaped("\xEF\xBF\xBF").substr(0, 3), replacement);
}

TEST(MarkupTest, ControlCharactersAreReplaced) {
    EXPECT_EQ(escaped(std::string("a\0\x1B[1mb\tc\nd", 11)),
              std::string("a") + replacement + replacement + "[1mb\tc\nd");
}

TEST(MarkupTest, CoordinatesAreShort) {
    EXPECT_EQ(coordinate(12), "12");
    EXPECT_EQ(coordinate(12.34), "12.3");
    EXPECT_EQ(coordinate(-0.01), "0");
    EXPECT_EQ(coordinate(99.96), "100");
}

}  // namespace
}  // namespace hetseq
