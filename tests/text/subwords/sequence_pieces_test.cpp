#include "hetseq/text/subwords/sequence_pieces.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

const WordPiece& pieces() {
    static const WordPiece vocabulary =
        WordPiece::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\nlow\n##est\nnew\n", "vocab.txt");
    return vocabulary;
}

TEST(SequenceEncoderTest, ASentenceStandsBetweenItsMarks) {
    SequenceEncoder encoder{pieces(), {}, 16};

    const SequencePieces row = encoder.encode("New lowest");

    EXPECT_THAT(row.ids, ElementsAre(2, 6, 4, 5, 3));
    EXPECT_EQ(row.second, 5);
    EXPECT_EQ(row.cut, 0);
}

TEST(SequenceEncoderTest, APairTellsWhereItsSecondSentenceBegins) {
    SequenceEncoder encoder{pieces(), {}, 16};

    const SequencePieces row = encoder.encode("new", "low zzz");

    EXPECT_THAT(row.ids, ElementsAre(2, 6, 3, 4, 1, 3));
    EXPECT_EQ(row.second, 3);
}

TEST(SequenceEncoderTest, AnEmptySecondSentenceIsThereNevertheless) {
    SequenceEncoder encoder{pieces(), {}, 16};

    EXPECT_THAT(encoder.encode("new", "").ids, ElementsAre(2, 6, 3, 3));
}

TEST(SequenceEncoderTest, TheLongerSentenceIsCut) {
    SequenceEncoder encoder{pieces(), {}, 7};

    const SequencePieces row = encoder.encode("low low low new new", "new low");

    // Four pieces remain of seven: the first sentence is longer until both have two.
    EXPECT_THAT(row.ids, ElementsAre(2, 4, 4, 3, 6, 4, 3));
    EXPECT_EQ(row.cut, 3);
    EXPECT_THAT(encoder.encode("new new new new", "low low low").ids,
                ElementsAre(2, 6, 6, 3, 4, 4, 3));
    EXPECT_THAT(encoder.encode("new new new", "low low low").ids, ElementsAre(2, 6, 6, 3, 4, 4, 3));
    EXPECT_THAT(encoder.encode("low low low low new new").ids, ElementsAre(2, 4, 4, 4, 4, 6, 3));
}

}  // namespace
}  // namespace hetseq
