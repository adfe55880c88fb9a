// The vocabulary's file and the rule of the longest piece.
#include "hetseq/text/bert/wordpiece.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_for(std::string_view bytes) {
    try {
        WordPiece::parse(bytes, "vocab.txt");
    } catch (const BadData& error) {
        return error.what();
    }
    return "no error";
}

std::vector<std::string> pieces_of_word(const WordPiece& pieces,
                                        std::string_view word,
                                        std::size_t most_characters = 200) {
    std::vector<std::int32_t> ids;
    pieces.append_pieces(word, most_characters, ids);
    std::vector<std::string> texts;
    for (const std::int32_t id : ids)
        texts.push_back(pieces.piece(id));
    return texts;
}

TEST(WordPieceTest, IdsAreTheLines) {
    const WordPiece pieces = WordPiece::parse("[UNK]\na\n##b\r\n c \t\n日", "v");

    EXPECT_EQ(pieces.size(), 5);
    EXPECT_EQ(pieces.unknown_id(), 0);
    EXPECT_EQ(pieces.find("##b"), 2);
    EXPECT_EQ(pieces.id_of("c"), 3);
    EXPECT_EQ(pieces.piece(4), "日");
    EXPECT_EQ(pieces.find("b"), std::nullopt);
}

// Google's Chinese vocabulary has U+2028 alone in a line. Its pieces keep the numbers of their
// lines, in Google's program and in transformers' BertTokenizer.
TEST(WordPieceTest, APieceOfUnicodesBlanksKeepsItsLine) {
    const std::string lines = "[UNK]\n\u2028\na\n\u3000\u00a0\n##\u2029\n##b\n\u3000c\n";
    const WordPiece pieces = WordPiece::parse(lines, "v");

    EXPECT_EQ(pieces.size(), 7);
    EXPECT_EQ(pieces.piece(1), "\u2028");
    EXPECT_EQ(pieces.find("a"), 2);
    EXPECT_EQ(pieces.find("##b"), 5);
    EXPECT_EQ(pieces.find("c"), 6);
    EXPECT_EQ(WordPiece::parse(pieces.lines(), "v").lines(), pieces.lines());
    EXPECT_THAT(message_for("[UNK]\n \t\r\n"), HasSubstr("line 2 holds no piece"));
}

TEST(WordPieceTest, AByteOrderMarkIsNoPartOfAPiece) {
    EXPECT_EQ(WordPiece::parse("\xEF\xBB\xBF[UNK]\r\na\r\n", "v").lines(), "[UNK]\na\n");
    EXPECT_THAT(message_for("\xFF\xFE[UNK]"), HasSubstr("vocab.txt is text in UTF-16"));
    EXPECT_THAT(message_for("[UNK]\ra\rb\r"), HasSubstr("line 1 holds a carriage return"));
}

TEST(WordPieceTest, LimitsAreNamed) {
    EXPECT_THAT(message_for(std::string((48 << 20) + 1, 'a')), HasSubstr("more than 48 MiB"));
}

TEST(WordPieceTest, TakesTheLongestPieceFirst) {
    const WordPiece pieces =
        WordPiece::parse("[UNK]\nab\nabc\n##d\n##cd\n##de\nlow\nlowest\n##est\n##e\n", "v");

    EXPECT_THAT(pieces_of_word(pieces, "abcd"), ElementsAre("abc", "##d"));
    EXPECT_THAT(pieces_of_word(pieces, "abcde"), ElementsAre("abc", "##de"));
    EXPECT_THAT(pieces_of_word(pieces, "lowestest"), ElementsAre("lowest", "##est"));
    EXPECT_THAT(pieces_of_word(pieces, ""), ElementsAre());
}

TEST(WordPieceTest, AWordThatIsNotCoveredIsUnknownAsAWhole) {
    const WordPiece pieces = WordPiece::parse("a\n##b\n[UNK]\n##abc\n", "v");

    EXPECT_THAT(pieces_of_word(pieces, "abab"), ElementsAre("[UNK]"));
    EXPECT_THAT(pieces_of_word(pieces, "b"), ElementsAre("[UNK]"));
    EXPECT_THAT(pieces_of_word(pieces, "ax"), ElementsAre("[UNK]"));
}

TEST(WordPieceTest, AWordOfTooManyCharactersIsUnknown) {
    const WordPiece pieces = WordPiece::parse("[UNK]\né\n##é\n", "v");

    EXPECT_THAT(pieces_of_word(pieces, "ééé", 3), ElementsAre("é", "##é", "##é"));
    EXPECT_THAT(pieces_of_word(pieces, "éééé", 3), ElementsAre("[UNK]"));
}

TEST(WordPieceTest, SaysWhatIsWrongWithAVocabulary) {
    EXPECT_THAT(message_for(""), HasSubstr("vocab.txt holds no pieces (it is empty)"));
    EXPECT_THAT(message_for("a\n"), HasSubstr("vocab.txt has no piece '[UNK]'"));
    EXPECT_THAT(message_for("[UNK]\n\nb\n"),
                HasSubstr("vocab.txt, line 2 holds no piece (the line is blank)"));
    EXPECT_THAT(
        message_for("[UNK]\nb\nc\nb\n"),
        HasSubstr("vocab.txt, line 4 repeats a piece ('b' is in line 2 already): remove one"));
    EXPECT_THAT(message_for("[UNK]\n\xff\n"), HasSubstr("vocab.txt, line 2 is not UTF-8"));
    EXPECT_THAT(message_for("[UNK]\n" + std::string(2000, 'a')),
                HasSubstr("line 2 is no piece (it has more than 1024 bytes)"));
}

TEST(WordPieceTest, AFileThatIsNotThereIsNamed) {
    EXPECT_THROW(WordPiece::read("/nowhere/vocab.txt"), MissingInput);
}

}  // namespace
}  // namespace hetseq
