#include "hetseq/text/subwords/word_pieces.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

const WordPiece& pieces_of_words() {
    static const WordPiece vocabulary =
        WordPiece::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\nlow\n##est\nnew\n,\n", "vocab.txt");
    return vocabulary;
}

std::vector<std::string> words(std::initializer_list<const char*> texts) {
    return {texts.begin(), texts.end()};
}

TEST(WordEncoderTest, TellsWhereEachWordBegins) {
    WordEncoder encoder{pieces_of_words(), {}, 16};

    const WordPieces row = encoder.encode(words({"New", "lowest", "new,low", "zzz"}));

    EXPECT_THAT(row.ids, ElementsAre(2, 6, 4, 5, 6, 7, 4, 1, 3));
    EXPECT_THAT(row.words, ElementsAre(1, 2, 4, 7));
}

TEST(WordEncoderTest, AWordOfWhichNothingIsLeftIsUnknown) {
    WordEncoder encoder{pieces_of_words(), {}, 16};

    const WordPieces row = encoder.encode(words({"low", "\x01", "new"}));

    EXPECT_THAT(row.ids, ElementsAre(2, 4, 1, 6, 3));
    EXPECT_THAT(row.words, ElementsAre(1, 2, 3));
}

TEST(WordEncoderTest, LongSentencesAreCutBehindAWord) {
    WordEncoder encoder{pieces_of_words(), {}, 5};

    EXPECT_THAT(encoder.encode(words({"new", "new", "lowest", "low"})).ids,
                ElementsAre(2, 6, 6, 3));
    EXPECT_THAT(encoder.encode(words({"new", "lowest"})).ids, ElementsAre(2, 6, 4, 5, 3));
    EXPECT_THAT(encoder.encode(words({"low,new,low"})).ids, ElementsAre(2, 4, 7, 6, 3));
    EXPECT_THAT(encoder.encode(words({"low,new,low"})).words, ElementsAre(1));
}

TEST(WordEncoderTest, CaseIsKeptWhereItIsAskedFor) {
    WordEncoder encoder{pieces_of_words(), BasicTokenizerOptions::cased(), 8};

    EXPECT_THAT(encoder.encode(words({"New", "new"})).ids, ElementsAre(2, 1, 6, 3));
}

}  // namespace
}  // namespace hetseq
