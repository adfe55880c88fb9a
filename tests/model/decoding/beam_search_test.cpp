#include "hetseq/model/decoding/beam_search.hpp"

#include <functional>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "model/decoding/table_decoder.hpp"

namespace hetseq {
namespace {

using test::TableDecoder;
using test::TableLanguage;
using test::Tokens;

std::vector<Hypothesis> search_one(const TableLanguage& language,
                                   const BeamOptions& options,
                                   std::int64_t source_length = 3) {
    TableDecoder decoder(language, 1);
    return beam_search(decoder, std::vector{source_length}, {}, options).front();
}

/// All translations of up to `longest` tokens, best score first.
std::vector<Hypothesis> all_translations(const TableLanguage& language,
                                         const BeamOptions& options,
                                         std::int64_t longest) {
    std::vector<Hypothesis> all;
    const std::function<void(const Tokens&, double)> go_on = [&](const Tokens& before, double sum) {
        const std::vector<double> scores = language.log_probabilities(0, before);
        const auto length = static_cast<std::int64_t>(before.size()) - 1;
        if (length >= std::min(options.min_length, longest)) {
            const double total = sum + scores[2];
            all.push_back(
                {Tokens(before.begin() + 1, before.end()),
                 total,
                 total / std::pow(static_cast<double>(length + 1), options.length_penalty)});
        }
        for (std::int32_t token = 0; token < language.size && length < longest; ++token) {
            if (token == 2)
                continue;
            Tokens longer = before;
            longer.push_back(token);
            go_on(longer,
                  sum + scores[static_cast<std::size_t>(token)] -
                      (token == 0 ? options.unknown_penalty : 0));
        }
    };
    go_on({1}, 0);
    std::sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) {
        return a.score > b.score;
    });
    return all;
}

/// fairseq's search (sequence_generator.py, search.py's BeamSearch), word by word on whole arrays
/// of scores, without any cut of candidates before the sentence's own.
std::vector<Hypothesis> fairseq_search(const TableLanguage& language,
                                       const BeamOptions& options,
                                       std::int64_t longest) {
    const auto beam = static_cast<std::size_t>(options.beam);
    std::vector<std::pair<Tokens, double>> live{{{1}, 0.0}};
    std::vector<Hypothesis> finalized;
    for (std::int64_t step = 0; step <= longest && !live.empty(); ++step) {
        std::vector<std::tuple<double, std::size_t, std::int32_t>> candidates;
        for (std::size_t row = 0; row < live.size(); ++row) {
            std::vector<double> scores = language.log_probabilities(0, live[row].first);
            scores[0] -= options.unknown_penalty;
            for (std::int32_t token = 0; token < language.size; ++token) {
                if (step >= longest ? token != 2 : step < options.min_length && token == 2)
                    continue;
                candidates.emplace_back(
                    -(live[row].second + scores[static_cast<std::size_t>(token)]), row, token);
            }
        }
        std::sort(candidates.begin(), candidates.end());
        candidates.resize(std::min(candidates.size(), 2 * beam));
        for (std::size_t i = 0; i < std::min(beam, candidates.size()); ++i) {
            const auto& [negative, row, token] = candidates[i];
            if (token != 2 || finalized.size() == beam)
                continue;
            const Tokens& tokens = live[row].first;
            finalized.push_back(
                {Tokens(tokens.begin() + 1, tokens.end()),
                 -negative,
                 -negative / std::pow(static_cast<double>(step + 1), options.length_penalty)});
        }
        if (finalized.size() == beam)
            break;
        std::vector<std::pair<Tokens, double>> active;
        for (const auto& [negative, row, token] : candidates)
            if (token != 2 && active.size() < beam) {
                active.emplace_back(live[row].first, -negative);
                active.back().first.push_back(token);
            }
        live = active;
    }
    std::stable_sort(finalized.begin(),
                     finalized.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    return finalized;
}

void expect_equal(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << i;
        EXPECT_DOUBLE_EQ(found[i].log_probability, expected[i].log_probability) << i;
        EXPECT_DOUBLE_EQ(found[i].score, expected[i].score) << i;
    }
}

TEST(BeamSearchTest, BeamOfOneIsGreedySearch) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const TableLanguage language{7, seed};
        Tokens greedy{1};
        for (;;) {
            std::vector<double> scores = language.log_probabilities(0, greedy);
            if (greedy.size() == 1)
                scores[2] = -INFINITY;  // one token at least
            const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
            if (best == 2 || greedy.size() == 13)
                break;
            greedy.push_back(static_cast<std::int32_t>(best));
        }
        greedy.erase(greedy.begin());

        const auto found = search_one(language, {.beam = 1, .length_constant = 12});

        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0].tokens, greedy) << seed;
    }
}

// Three tokens besides the end and up to two of them: 1 + 3 + 9 translations, of which five at most
// are followed at once.
TEST(BeamSearchTest, WideBeamFindsWhatAnExhaustiveSearchFinds) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const TableLanguage language{4, seed};
        BeamOptions options{.beam = 13, .hypotheses = 13, .length_constant = 2, .min_length = 0};
        options.length_penalty = 0.2 * static_cast<double>(seed % 8);
        options.unknown_penalty = seed % 3 == 0 ? 0.7 : 0;

        expect_equal(search_one(language, options), all_translations(language, options, 2));
    }
}

// Two tokens besides the end and up to two of them: a beam of five follows all.
TEST(BeamSearchTest, BeamOfFiveIsExhaustiveWhereTheVocabularyIsTiny) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const TableLanguage language{3, seed};  // unknown, begin, end
        const BeamOptions options{.beam = 5, .hypotheses = 1, .length_constant = 2};

        const auto expected = all_translations(language, options, 2);

        expect_equal(search_one(language, options), {expected.front()});
    }
}

TEST(BeamSearchTest, FindsWhatFairseqFinds) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed)
        for (const std::int64_t beam : {1, 2, 3, 5, 8}) {
            const TableLanguage language{static_cast<std::int32_t>(6 + seed % 20), seed};
            BeamOptions options{.beam = beam, .hypotheses = beam, .length_constant = 9};
            options.length_penalty = seed % 4 == 0 ? 0.6 : seed % 4 == 1 ? 2.0 : 1.0;
            options.min_length = static_cast<std::int64_t>(seed % 3);
            options.unknown_penalty = seed % 5 == 0 ? 1.5 : 0;

            expect_equal(search_one(language, options), fairseq_search(language, options, 9));
        }
}

TEST(BeamSearchTest, LongestLengthFollowsTheSource) {
    const TableLanguage language{4, 3};
    BeamOptions options{.beam = 2, .length_factor = 1.5, .length_constant = 2, .min_length = 100};

    for (const std::int64_t source : {1, 2, 7})
        EXPECT_EQ(search_one(language, options, source).front().tokens.size(),
                  static_cast<std::size_t>(1.5 * static_cast<double>(source) + 2));
}

TEST(BeamSearchTest, LongestLengthIsBoundedByThePositions) {
    TableDecoder decoder({4, 3}, 1);
    const BeamOptions options{.beam = 2, .min_length = 100};

    const auto found = beam_search(decoder, std::vector<std::int64_t>{4}, {1, 2, 6}, options);

    EXPECT_EQ(found.front().front().tokens.size(), 5u);
    EXPECT_EQ(decoder.steps.size(), 6u);
}

TEST(BeamSearchTest, SentencesOfABatchAreSearchedApart) {
    const TableLanguage language{9, 5};
    const BeamOptions options{.beam = 3, .hypotheses = 3, .length_constant = 8};
    TableDecoder decoder(language, 6);
    const std::vector<std::int64_t> lengths(6, 4);

    const auto together = beam_search(decoder, lengths, {}, options);

    ASSERT_EQ(together.size(), 6u);
    expect_equal(together[0], search_one(language, options));
    // What is finished takes no more rows.
    EXPECT_EQ(decoder.steps.front(), 6u);
    EXPECT_LT(decoder.steps.back(), 18u);
}

TEST(BeamSearchTest, NoSentencesGiveNothing) {
    TableDecoder decoder({}, 0);

    EXPECT_TRUE(beam_search(decoder, {}, {}, {}).empty());
}

class NotANumberDecoder final : public StepDecoder {
    void step(std::span<const DecoderRow> rows,
              const CandidateRule& rule,
              Candidates& candidates) override {
        candidates.tokens.assign(rows.size() * static_cast<std::size_t>(rule.count), -1);
        candidates.log_probabilities.assign(candidates.tokens.size(), NAN);
        candidates.end.assign(rows.size(), NAN);
    }
};

TEST(BeamSearchTest, ScoresThatAreNoNumbersAreAnError) {
    NotANumberDecoder decoder;

    EXPECT_THROW(beam_search(decoder, std::vector<std::int64_t>{3}, {}, {}), BadData);
}

TEST(BeamSearchTest, OptionsThatMakeNoSenseAreRefused) {
    EXPECT_NO_THROW(check(BeamOptions{}));
    EXPECT_THROW(check(BeamOptions{.beam = 0}), BadConfig);
    EXPECT_THROW(check(BeamOptions{.beam = 3, .hypotheses = 4}), BadConfig);
    EXPECT_THROW(check(BeamOptions{.length_penalty = NAN}), BadConfig);
    EXPECT_THROW(check(BeamOptions{.length_factor = -1}), BadConfig);
    EXPECT_THROW(check(BeamOptions{.length_constant = -1}), BadConfig);
    EXPECT_THROW(check(BeamOptions{.min_length = -1}), BadConfig);
}

}  // namespace
}  // namespace hetseq
