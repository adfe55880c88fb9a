#include "hetseq/util/text.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Names = std::vector<std::string>;

TEST(NearestNameTest, FindsAMisspelling) {
    const Names names{"max-sentences", "max-update", "lr"};

    EXPECT_EQ(nearest_name("max-sentence", names), "max-sentences");
    EXPECT_EQ(nearest_name("max-updaet", names), "max-update");
    EXPECT_EQ(nearest_name("rl", names), "lr");
}

TEST(NearestNameTest, IsEmptyForAnUnlikeWord) {
    EXPECT_EQ(nearest_name("zzzzzz", Names{"max-sentences", "lr"}), "");
    EXPECT_EQ(nearest_name("learning-rate", Names{"end-learning-rate"}), "");
}

TEST(SuggestionTest, ListsAllWhenNothingIsNear) {
    EXPECT_EQ(suggestion("zzzzzz", Names{"alpha", "beta"}), "Known: alpha, beta.");
    EXPECT_EQ(suggestion("alpa", Names{"alpha", "beta"}), "Did you mean alpha?");
}

TEST(SplitTest, TrimsPartsAndKeepsEmptyOnesBetweenSeparators) {
    EXPECT_EQ(split(" a, b ,,c", ','), (Names{"a", "b", "", "c"}));
    EXPECT_TRUE(split("  ", ',').empty());
}

TEST(HoldsWordsTest, TakesWholeWordsInARow) {
    EXPECT_TRUE(holds_words("Tesla V100-SXM2-16GB", "v100"));
    EXPECT_TRUE(holds_words("Tesla V100-SXM2-16GB", "tesla v100"));
    EXPECT_TRUE(holds_words("GeForce GTX 1080 Ti", "1080ti"));
    EXPECT_FALSE(holds_words("NVIDIA A100", "a10"));
    EXPECT_FALSE(holds_words("NVIDIA H100", "h1"));
    EXPECT_FALSE(holds_words("NVIDIA H100", ""));
}

TEST(FormatDurationTest, ShowsHoursOnlyWhenThereAreSome) {
    EXPECT_EQ(format_duration(59.4), "0:59");
    EXPECT_EQ(format_duration(61), "1:01");
    EXPECT_EQ(format_duration(3723), "1:02:03");
}

TEST(FormatNumberTest, LargeNumbersAreWrittenOutInGroups) {
    EXPECT_EQ(format_number(92784.4), "92,780");
    EXPECT_EQ(format_number(-92784.4), "-92,780");
    EXPECT_EQ(format_number(1234567.0, 3), "1,230,000");
    EXPECT_EQ(format_number(12345.25, 7), "12,345.25");
    EXPECT_EQ(format_number(9999.9), "10,000");
    EXPECT_EQ(format_number(1e9), "1,000,000,000");
    EXPECT_EQ(format_number(2682.4), "2682");
    EXPECT_EQ(format_number(1893.4, 3), "1890");
    EXPECT_EQ(format_number(-3718.2, 2), "-3700");
    EXPECT_EQ(format_number(99.96, 1), "100");
    EXPECT_EQ(format_number(9996.0, 3), "10,000");
}

TEST(FormatNumberTest, OthersHaveSoManyDigits) {
    EXPECT_EQ(format_number(0.12344), "0.1234");
    EXPECT_EQ(format_number(1.2e-5), "1.2e-05");
    EXPECT_EQ(format_number(1e300), "1e+300");
    EXPECT_EQ(format_number(std::numeric_limits<double>::infinity()), "inf");
    EXPECT_EQ(format_number(std::numeric_limits<double>::quiet_NaN()), "nan");
    EXPECT_EQ(format_number(0), "0");
}

TEST(WrappedTest, BreaksLongLinesAtBlanksAndIndentsWhatGoesOn) {
    EXPECT_EQ(wrapped("one two three four", 10), "one two\n    three\n    four");
    EXPECT_EQ(wrapped("one two three", 13), "one two three");
    EXPECT_EQ(wrapped("one two three", 13, 5), "one two\n    three");
    EXPECT_EQ(wrapped("one\ntwo three four\n", 10), "one\ntwo three\n    four\n");
}

TEST(WrappedTest, LeavesAWordWholeThatIsLongerThanALine) {
    EXPECT_EQ(wrapped("in /a/very/long/path it is", 10), "in\n    /a/very/long/path\n    it is");
    EXPECT_EQ(wrapped("/a/very/long/path", 10, 8), "/a/very/long/path");
}

TEST(FormatTableTest, AlignsColumns) {
    const std::vector<std::vector<std::string>> rows{{"host", "n"}, {"a", "10"}};

    EXPECT_EQ(format_table(rows), "host  n\na     10\n");
}

}  // namespace
}  // namespace hetseq
