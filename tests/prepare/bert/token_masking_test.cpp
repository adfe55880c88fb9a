#include "hetseq/prepare/bert/token_masking.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;

constexpr std::int32_t cls = 1, sep = 2, mask_id = 3;

MaskingVocabulary vocabulary() {
    MaskingVocabulary vocabulary{.size = 1000, .mask = mask_id, .begin = cls, .separator = sep};
    for (int id = 0; id < 1000; ++id)
        vocabulary.continues.push_back(id % 3 == 2);
    return vocabulary;
}

// [CLS] first [SEP] second [SEP], with tokens from 500 on.
std::vector<std::int32_t> sequence(std::int32_t first, std::int32_t second) {
    std::vector<std::int32_t> tokens{cls};
    for (std::int32_t i = 0; i < first + second; ++i) {
        if (i == first)
            tokens.push_back(sep);
        tokens.push_back(500 + i);
    }
    tokens.push_back(sep);
    return tokens;
}

std::vector<std::int32_t> list(std::span<const std::int32_t> values) {
    return {values.begin(), values.end()};
}

// Predictions in a sequence of so many tokens.
std::size_t predictions(std::int32_t tokens, const MaskingOptions& options = {}) {
    TokenMasker masker{vocabulary(), options};
    std::vector<std::int32_t> sequence_of_them = sequence(1, tokens - 4);
    KeyedDraws draws{1};
    MaskingCounts counts;
    masker.mask(sequence_of_them, draws, counts);
    return masker.positions().size();
}

// round(0.15 n) as Python rounds: 1.5 to 2, 4.5 to 4.
TEST(TokenMaskingTest, TheNumberOfPredictionsIsRoundedAsInPython) {
    EXPECT_EQ(predictions(5), 1U);
    EXPECT_EQ(predictions(10), 2U);
    EXPECT_EQ(predictions(30), 4U);
    EXPECT_EQ(predictions(128), 19U);
    EXPECT_EQ(predictions(200), 20U);
    EXPECT_EQ(predictions(128, {.prob = 0}), 1U);
    EXPECT_EQ(predictions(128, {.most_predictions = 3}), 3U);
    EXPECT_EQ(predictions(128, {.prob = 1, .most_predictions = 1000}), 125U);
}

TEST(TokenMaskingTest, LabelsAreTheTokensThatStoodThere) {
    TokenMasker masker{vocabulary(), {}};
    MaskingCounts counts;
    for (std::uint64_t key = 0; key < 100; ++key) {
        const std::vector<std::int32_t> before = sequence(30, 40);
        std::vector<std::int32_t> after = before;
        KeyedDraws draws{key};
        masker.mask(after, draws, counts);

        std::vector<std::int32_t> restored = after;
        for (std::size_t i = 0; i < masker.positions().size(); ++i)
            restored[static_cast<std::size_t>(masker.positions()[i])] = masker.labels()[i];
        EXPECT_EQ(restored, before);
        EXPECT_TRUE(std::is_sorted(masker.positions().begin(), masker.positions().end()));
        EXPECT_THAT(list(masker.labels()), Each(Ge(500)));  // never [CLS] or [SEP]
    }
}

TEST(TokenMaskingTest, MostBecomeMaskSomeRandomAndSomeStay) {
    TokenMasker masker{vocabulary(), {}};
    MaskingCounts counts;
    std::int64_t shown_masks = 0;
    for (std::uint64_t key = 0; key < 2000; ++key) {
        std::vector<std::int32_t> tokens = sequence(60, 60);
        KeyedDraws draws{key};
        masker.mask(tokens, draws, counts);
        shown_masks += std::count(tokens.begin(), tokens.end(), mask_id);
    }
    // 2000 sequences of 18 predictions; five standard deviations of a binomial are 380 and 285.
    EXPECT_EQ(counts.masked + counts.kept + counts.replaced, 36'000);
    EXPECT_NEAR(static_cast<double>(counts.masked), 28'800, 380);
    EXPECT_NEAR(static_cast<double>(counts.kept), 3'600, 285);
    EXPECT_NEAR(static_cast<double>(counts.replaced), 3'600, 285);
    EXPECT_GE(shown_masks, counts.masked);  // a random token may be [MASK]
    EXPECT_LE(shown_masks, counts.masked + 30);
}

TEST(TokenMaskingTest, EveryTokenIsChosenAsOften) {
    TokenMasker masker{vocabulary(), {}};
    MaskingCounts counts;
    std::vector<std::int64_t> chosen(43);
    for (std::uint64_t key = 0; key < 20'000; ++key) {
        std::vector<std::int32_t> tokens = sequence(20, 20);
        KeyedDraws draws{key};
        masker.mask(tokens, draws, counts);
        for (const std::int32_t position : masker.positions())
            ++chosen[static_cast<std::size_t>(position)];
    }
    // 6 of 40 tokens in each sequence: 3000 times, give or take 5 * 50.5.
    for (std::size_t position = 0; position < chosen.size(); ++position) {
        const bool is_special = position == 0 || position == 21 || position == 42;
        EXPECT_NEAR(static_cast<double>(chosen[position]), is_special ? 0 : 3000, 253) << position;
    }
}

TEST(TokenMaskingTest, AWordIsMaskedAsAWholeOrNot) {
    TokenMasker masker{vocabulary(), {.most_predictions = 5, .whole_words = true}};
    MaskingCounts counts;
    for (std::uint64_t key = 0; key < 200; ++key) {
        // 500 continues 499's word, 503 that of 502: words are (501 502), which 503 goes on, ...
        std::vector<std::int32_t> tokens = sequence(30, 30);
        KeyedDraws draws{key};
        masker.mask(tokens, draws, counts);
        const std::vector<std::int32_t> labels = list(masker.labels());
        EXPECT_LE(labels.size(), 5U);
        for (const std::int32_t label : labels) {
            const auto has = [&](std::int32_t id) {
                return std::find(labels.begin(), labels.end(), id) != labels.end();
            };
            const bool continues = label % 3 == 2, is_first = label == 500;
            EXPECT_TRUE(!continues || is_first || has(label - 1)) << label;
            EXPECT_TRUE(label % 3 != 1 || label == 559 || has(label + 1)) << label;
        }
    }
}

TEST(TokenMaskingTest, AWordThatIsTooLongIsLeftOut) {
    MaskingVocabulary all_continue = vocabulary();
    all_continue.continues.assign(1000, true);
    all_continue.continues[500] = false;
    TokenMasker masker{all_continue, {.prob = 1, .most_predictions = 5, .whole_words = true}};
    std::vector<std::int32_t> tokens = sequence(3, 3);  // one word of six pieces
    KeyedDraws draws{1};
    MaskingCounts counts;

    masker.mask(tokens, draws, counts);

    EXPECT_TRUE(masker.positions().empty());
    EXPECT_EQ(tokens, sequence(3, 3));
}

// A model may have more ids than the vocabulary has pieces: such an id begins a word.
TEST(TokenMaskingTest, AnIdThatTheVocabularyLacksIsAWordByItself) {
    TokenMasker masker{vocabulary(), {.prob = 1, .most_predictions = 1, .whole_words = true}};
    std::vector<std::int32_t> tokens{cls, 100'000'000, sep};
    KeyedDraws draws{1};
    MaskingCounts counts;

    masker.mask(tokens, draws, counts);

    EXPECT_THAT(list(masker.labels()), ElementsAre(100'000'000));
}

TEST(TokenMaskingTest, TheKeyDecidesAll) {
    const auto masked = [](std::uint64_t key) {
        TokenMasker masker{vocabulary(), {}};
        std::vector<std::int32_t> tokens = sequence(30, 30);
        KeyedDraws draws{key};
        MaskingCounts counts;
        masker.mask(tokens, draws, counts);
        return tokens;
    };
    EXPECT_EQ(masked(4), masked(4));
    EXPECT_NE(masked(4), masked(5));
}

}  // namespace
}  // namespace hetseq
