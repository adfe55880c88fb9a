#include "hetseq/text/text_lines.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> lines_of(const std::string& content) {
    std::istringstream text(content);
    return read_text_lines(text, "text.de");
}

TEST(TextLinesTest, LineFeedsEndLinesAndMayFollowAReturn) {
    EXPECT_THAT(lines_of("a\r\n\nb\u2028c"), ElementsAre("a", "", "b\u2028c"));
    EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                         "a\r"),
                ElementsAre("a"));
    EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
    EXPECT_THAT(lines_of(""), ElementsAre());
}

TEST(TextLinesTest, NamesTheLineThatIsNotUtf8) {
    EXPECT_THAT(
        [] { lines_of("ein\ncaf\xe9\n"); },
        ThrowsMessage<BadData>(HasSubstr("text.de line 2 is not UTF-8 (byte 4 of the line")));
}

TEST(TextLinesTest, NamesTheLineWithAReturnInsideAndOtherEncodings) {
    EXPECT_THAT([] { lines_of("a\nb\rc\rd\r"); },
                ThrowsMessage<BadData>(HasSubstr("text.de line 2 holds a carriage return")));
    EXPECT_THAT(
        [] {
            lines_of(
                "\xFF\xFE"
                "a");
        },
        ThrowsMessage<BadData>(HasSubstr("text.de is text in UTF-16")));
}

TEST(TextLinesTest, NamesAFileThatCannotBeRead) {
    EXPECT_THAT([] { read_text_lines("tests/none.de"); },
                ThrowsMessage<MissingInput>(HasSubstr("cannot read tests/none.de")));
    EXPECT_THAT([] { read_text_lines("tests"); },
                ThrowsMessage<BadData>(HasSubstr("tests is not a file (it is a folder)")));
}

}  // namespace
}  // namespace hetseq
