#include "app/translation/text_translation.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

Vocabulary letters() {
    return Vocabulary::parse("# hetseq dictionary 1\na 9\nb 8\nc 7\nd 6\n", "the test's");
}

/// Translates each token to itself.
TranslatedBatch echoed(const TranslationBatch& batch, std::size_t hypotheses = 1) {
    TranslatedBatch result{batch.number, {}};
    for (std::vector<std::int32_t> source : batch.sources) {
        source.pop_back();
        result.translations.emplace_back();
        for (std::size_t i = 0; i < hypotheses; ++i)
            result.translations.back().push_back({source, -1.0, -0.5 * static_cast<double>(i + 1)});
    }
    return result;
}

TEST(CutBatchesTest, LongestComeFirstAndCapsHold) {
    const std::vector<std::int64_t> lengths{3, 9, 3, 4, 3, 3};

    EXPECT_THAT(cut_batches(lengths, {.sentences = 2, .tokens = 7}),
                ElementsAre(ElementsAre(1), ElementsAre(3, 0), ElementsAre(2, 4), ElementsAre(5)));
    EXPECT_TRUE(cut_batches({}, {}).empty());
}

TEST(BatchMessageTest, BatchesComeBackFromTheirBytes) {
    const TranslationBatch batch{7, {{5, 4, 2}, {}, {2}}};
    const TranslationBatch back = batch_from_bytes(to_bytes(batch));
    const TranslatedBatch result{8, {{{{1, 2}, -0.25, -0.125}, {{}, -3, -4}}, {}}};
    const TranslatedBatch result_back = translated_from_bytes(to_bytes(result));

    EXPECT_EQ(back.number, 7);
    EXPECT_EQ(back.sources, batch.sources);
    EXPECT_EQ(result_back.number, 8);
    ASSERT_EQ(result_back.translations.size(), 2u);
    ASSERT_EQ(result_back.translations[0].size(), 2u);
    EXPECT_EQ(result_back.translations[0][0].tokens, (std::vector<std::int32_t>{1, 2}));
    EXPECT_EQ(result_back.translations[0][0].log_probability, -0.25);
    EXPECT_EQ(result_back.translations[0][0].score, -0.125);
}

TEST(TextTranslationTest, LinesComeOutInTheOrderOfTheInput) {
    const Vocabulary vocabulary = letters();
    const TextOptions options{.caps = {.sentences = 2}, .window = 5};
    TextTranslation text(vocabulary, vocabulary, options);
    std::string expected;
    for (const char* line : {"a", "a b c", "", "d d", "c", "b a", "  "}) {
        text.add(line);
        expected += std::string(line) == "  " ? "\n" : std::string(line) + "\n";
    }
    EXPECT_TRUE(text.has_batch());
    text.cut(true);

    std::vector<TranslationBatch> batches;
    while (text.has_batch())
        batches.push_back(text.take_batch());
    std::string out;
    EXPECT_EQ(text.share_done(), 0);
    for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
        text.put(echoed(*batch));
        text.write(out);
    }

    EXPECT_EQ(out, expected);
    EXPECT_TRUE(text.is_written());
    EXPECT_EQ(text.share_done(), 1);
    EXPECT_EQ(text.lines(), 7);
}

TEST(TextTranslationTest, WritesAsManyLinesAsHypothesesAreAskedFor) {
    const Vocabulary vocabulary = letters();
    const TextOptions options{.hypotheses = 3, .print_scores = true};
    TextTranslation text(vocabulary, vocabulary, options);
    text.add("a b");
    text.cut(true);

    text.put(echoed(text.take_batch(), 2));
    std::string out;
    text.write(out);

    EXPECT_EQ(out, "-0.5000\ta b\n-1.0000\ta b\n\t\n");
}

TEST(TextTranslationTest, LinesAboveTheModelsPositionsAreCutAndCounted) {
    const Vocabulary vocabulary = letters();
    const TextOptions options{.max_positions = 3};
    TextTranslation text(vocabulary, vocabulary, options);
    for (const char* line : {"a b", "a b c d", "d c b a"})
        text.add(line);
    text.cut(true);

    text.put(echoed(text.take_batch()));
    std::string out;
    text.write(out);

    EXPECT_EQ(out, "a b\na b\nd c\n");
    EXPECT_EQ(text.cut_lines(), 2);
    EXPECT_EQ(text.first_cut_line(), 2);
}

TEST(TextTranslationTest, HoldsABoundedNumberOfLines) {
    const Vocabulary vocabulary = letters();
    const TextOptions options{.window = 4};
    TextTranslation text(vocabulary, vocabulary, options);
    int added = 0;
    for (; text.wants_lines(); ++added)
        text.add("a");

    EXPECT_EQ(added, 8);
    text.put(echoed(text.take_batch()));
    std::string out;
    text.write(out);
    EXPECT_TRUE(text.wants_lines());
}

}  // namespace
}  // namespace hetseq
