#include "hetseq/text/code_points.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "text/bleu_reference.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

TEST(CodePointsTest, DecodesWhatItEncodes) {
    const std::u32string text{U'a', 0, 0x7ff, 0xffff, 0x10ffff};

    EXPECT_EQ(decode_utf8(encode_utf8(text)), text);
}

TEST(CodePointsTest, BadUtf8IsAnError) {
    EXPECT_THAT([] { decode_utf8("caf\xe9"); },
                testing::ThrowsMessage<BadData>(testing::HasSubstr("byte 4 begins no character")));
}

TEST(CodePointsTest, BlanksArePythons) {
    std::vector<char32_t> blanks;
    for (char32_t c = 0; c < 0x110000; ++c)
        if (is_blank(c))
            blanks.push_back(c);

    EXPECT_EQ(blanks, bleu_reference().at("characters").at("blanks").get<std::vector<char32_t>>());
}

TEST(CodePointsTest, SplitsBetweenBlanks) {
    EXPECT_THAT(words_between_blanks(U" a\u3000bc\t "), ElementsAre(U"a", U"bc"));
    EXPECT_TRUE(words_between_blanks(U" \u00a0").empty());
    EXPECT_EQ(without_trailing_blanks(U" a \u2028"), U" a");
    EXPECT_EQ(without_trailing_blanks(U" "), U"");
}

}  // namespace
}  // namespace hetseq
