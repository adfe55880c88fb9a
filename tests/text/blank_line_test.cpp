#include "hetseq/text/blank_line.hpp"

#include <string>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(BlankLineTest, BlanksOfAnyKindAreBlank) {
    for (const char* line : {"",
                             " ",
                             "\t \r",
                             "\v\f",
                             "\x1c\x1f",
                             "\xc2\xa0",
                             " \xe3\x80\x80 ",
                             "\xe2\x80\x83\xc2\x85"})
        EXPECT_TRUE(is_blank_line(line)) << line;
}

TEST(BlankLineTest, AnythingElseIsNot) {
    for (const char* line : {"a", "  .", "\xc3\xa9", " \xe3\x80\x80 x", "\x01", "\xe2\x80\x8b"})
        EXPECT_FALSE(is_blank_line(line)) << line;
    EXPECT_FALSE(is_blank_line(std::string(1, '\0')));
}

TEST(BlankLineTest, BytesThatAreNotUtf8CountAsNothing) {
    EXPECT_TRUE(is_blank_line(" \xff\xc3 "));
    EXPECT_FALSE(is_blank_line(" \xff x"));
}

}  // namespace
}  // namespace hetseq
