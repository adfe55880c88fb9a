#include "hetseq/util/plain_text.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::string_view_literals;
using testing::HasSubstr;
using testing::StartsWith;

TEST(PlainTextTest, OneByteOrderMarkGoes) {
    EXPECT_EQ(begin_of_text("\xEF\xBB\xBFtext", "f"), "text");
    EXPECT_EQ(begin_of_text("\xEF\xBB\xBF\xEF\xBB\xBFtext", "f"), "\xEF\xBB\xBFtext");
    EXPECT_EQ(begin_of_text("\xEF\xBB", "f"), "\xEF\xBB");
    EXPECT_EQ(begin_of_text("", "f"), "");
}

// The bytes are what iconv makes of "ab".
TEST(PlainTextTest, OtherEncodingsAreNamed) {
    for (const std::string_view bytes : {"\xFF\xFE"
                                         "a\0b\0"sv,
                                         "\xFE\xFF\0a\0b"sv,
                                         "a\0b\0"sv,
                                         "\0a\0b"sv}) {
        const auto fault = encoding_fault(bytes, "the file");
        ASSERT_TRUE(fault);
        EXPECT_THAT(fault->text(), StartsWith("the file is text in UTF-16"));
        EXPECT_THROW(begin_of_text(bytes, "f"), BadData);
    }
    EXPECT_THAT(encoding_fault("\xFF\xFE\0\0a\0\0\0"sv, "f")->text(), HasSubstr("UTF-32"));
    EXPECT_THAT(encoding_fault("\0\0\xFE\xFF\0\0\0a"sv, "f")->text(), HasSubstr("UTF-32"));
    for (const std::string_view bytes : {""sv, "a"sv, "ab\0c"sv, "\0\0\0\0"sv, "é"sv})
        EXPECT_FALSE(encoding_fault(bytes, "f"));
}

TEST(PlainTextTest, LinesEndWithLfOrCrlf) {
    std::string_view text = "a\r\n\nb\r\r\nc\r";
    EXPECT_EQ(take_line(text), "a");
    EXPECT_EQ(take_line(text), "");
    EXPECT_EQ(take_line(text), "b\r");
    EXPECT_EQ(take_line(text), "c");
    EXPECT_TRUE(text.empty());
}

TEST(PlainTextTest, ACarriageReturnWithinALineIsRefusedByItsPlace) {
    const auto place = [] { return std::string("f, line 3"); };
    EXPECT_NO_THROW(check_line_end("a b", place));
    try {
        check_line_end("a\rb", place);
        FAIL();
    } catch (const BadData& error) {
        EXPECT_THAT(error.what(), StartsWith("f, line 3 holds a carriage return"));
    }
}

}  // namespace
}  // namespace hetseq
