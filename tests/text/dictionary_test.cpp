#include "hetseq/text/dictionary.hpp"

#include <gtest/gtest.h>

#include "hetseq/text/vocabulary.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(WordCountsTest, FrequentWordsComeFirstThenTheirBytesDecide) {
    WordCounts counts;
    counts.add_line("b a c b");
    counts.add_line("");
    counts.add_line("  d\ta <unk>");

    EXPECT_EQ(counts.dictionary(0), "# hetseq dictionary 1\na 2\nb 2\nc 1\nd 1\n");
    EXPECT_EQ(counts.dictionary(5), "# hetseq dictionary 1\na 2\nb 2\n");
    EXPECT_EQ(Vocabulary::parse(counts.dictionary(5), "a test").size(), 5);
    EXPECT_EQ(Vocabulary::parse(counts.dictionary(2), "a test").size(), 3);
}

TEST(WordCountsTest, CountsOfSeveralAreAdded) {
    WordCounts first;
    WordCounts second;
    first.add_line("a b ü");
    second.add_line("ü c");

    first.add_text(second.text());

    EXPECT_EQ(first.dictionary(0), "# hetseq dictionary 1\nü 2\na 1\nb 1\nc 1\n");
}

TEST(WordCountsTest, SubwordNmtIsKnownByItsMark) {
    WordCounts counts;
    counts.add_line("Stra@@ ße");
    const Vocabulary vocabulary = Vocabulary::parse(counts.dictionary(0), "a test");

    std::vector<std::int32_t> ids;
    vocabulary.encode("Stra@@ ße", ids);

    EXPECT_EQ(vocabulary.decode(ids), "Straße");
}

}  // namespace
}  // namespace hetseq
