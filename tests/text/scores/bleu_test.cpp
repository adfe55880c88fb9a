#include "hetseq/text/scores/bleu.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "text/bleu_reference.hpp"

namespace hetseq {
namespace {

// A last digit of fp64 is left to the C library's exp and log.
constexpr double rounding = 4e-15;  // relative

template <class Choice>
Choice named(const std::vector<std::string>& names, const std::string& name) {
    return static_cast<Choice>(std::find(names.begin(), names.end(), name) - names.begin());
}

BleuStatistics sum_over(const ReferenceCorpus& corpus,
                        std::size_t references,
                        const BleuOptions& options) {
    BleuStatistics sum;
    for (std::size_t i = 0; i < corpus.hypotheses.size(); ++i)
        sum += bleu_statistics(corpus.hypotheses[i], corpus.references_of(i, references), options);
    return sum;
}

// `expected`: smoothing, its value, score, precisions, brevity penalty, line.
void expect_score(const nlohmann::json& expected,
                  const BleuStatistics& statistics,
                  BleuOptions options,
                  std::size_t references) {
    options.smoothing =
        named<BleuSmoothing>(bleu_smoothing_names(), expected.at(0).get<std::string>());
    if (!expected.at(1).is_null())
        options.smooth_value = expected.at(1).get<double>();

    const BleuScore score = bleu_score(statistics, options);

    const double wanted = expected.at(2).get<double>();
    EXPECT_NEAR(score.score, wanted, rounding * wanted);
    EXPECT_EQ(score.precisions, (expected.at(3).get<std::array<double, 4>>()));
    EXPECT_DOUBLE_EQ(score.brevity_penalty, expected.at(4).get<double>());
    EXPECT_EQ(score_line(as_metric(score, options, references), 2),
              expected.at(5).get<std::string>());
}

TEST(BleuTest, EqualsSacrebleuOnRandomText) {
    std::size_t compared = 0;
    for (const auto& expected : bleu_reference().at("corpora")) {
        const ReferenceCorpus corpus = ReferenceCorpus::from_json(expected);
        for (const auto& item : expected.at("bleu")) {
            SCOPED_TRACE(item.dump());
            const BleuOptions options{
                .tokenizer = named<BleuTokenizer>(bleu_tokenizer_names(),
                                                  item.at("tokenizer").get<std::string>()),
                .lowercase = item.at("lowercase").get<bool>()};
            const auto references = item.at("references").get<std::size_t>();

            const BleuStatistics statistics = sum_over(corpus, references, options);

            EXPECT_EQ(statistics.values,
                      (item.at("statistics").get<decltype(BleuStatistics::values)>()));
            for (const auto& score : item.at("scores"))
                expect_score(score, statistics, options, references);
            compared += item.at("scores").size();
        }
    }
    EXPECT_GE(compared, 280U);
}

TEST(BleuTest, ScoresSentencesAsSacrebleu) {
    const BleuOptions options{.effective_order = true};
    for (const auto& expected : bleu_reference().at("corpora")) {
        const ReferenceCorpus corpus = ReferenceCorpus::from_json(expected);
        for (std::size_t i = 0; i < corpus.hypotheses.size(); ++i) {
            const BleuStatistics statistics =
                bleu_statistics(corpus.hypotheses[i], corpus.references_of(i, 1), options);

            EXPECT_EQ(score_line(as_metric(bleu_score(statistics, options), options, 1), 1),
                      expected.at("sentences").at(i).get<std::string>());
        }
    }
}

void expect_real_score(const nlohmann::json& expected,
                       const ReferenceCorpus& corpus,
                       const BleuOptions& options) {
    const BleuScore score = bleu_score(sum_over(corpus, 1, options), options);

    const double wanted = expected.at("score").get<double>();
    EXPECT_NEAR(score.score, wanted, rounding * wanted);
    EXPECT_EQ(score.matches, (expected.at("counts").get<std::array<double, 4>>()));
    EXPECT_EQ(score.ngrams, (expected.at("totals").get<std::array<double, 4>>()));
    EXPECT_EQ(score.precisions, (expected.at("precisions").get<std::array<double, 4>>()));
    EXPECT_DOUBLE_EQ(score.brevity_penalty, expected.at("bp").get<double>());
    EXPECT_EQ(score.hypothesis_length, expected.at("sys_len").get<std::int64_t>());
    EXPECT_EQ(score.reference_length, expected.at("ref_len").get<std::int64_t>());
}

TEST(BleuTest, EqualsSacrebleuOnNewstest2017) {
    if (!std::filesystem::exists(real_translations()))
        GTEST_SKIP() << "no translations in " << real_translations() << " (HETSEQ_TEST_DATA)";
    for (const RealTranslations& real : read_real_translations()) {
        SCOPED_TRACE(real.system);
        const auto expect = [&](const char* name, const BleuOptions& options) {
            SCOPED_TRACE(name);
            expect_real_score(real.expected.at(name), real.corpus, options);
        };
        expect("bleu_13a", {});
        expect("bleu_13a_lc", {.lowercase = true});
        expect("bleu_none", {.tokenizer = BleuTokenizer::none});
        expect("bleu_13a_smooth_none", {.smoothing = BleuSmoothing::none});
        expect("bleu_13a_smooth_floor", {.smoothing = BleuSmoothing::floor});
        expect("bleu_13a_smooth_addk", {.smoothing = BleuSmoothing::add_k});
    }
}

TEST(BleuTest, EqualsSacrebleuOnSentencesOfNewstest2017) {
    if (!std::filesystem::exists(real_translations()))
        GTEST_SKIP() << "no translations in " << real_translations() << " (HETSEQ_TEST_DATA)";
    const BleuOptions options{.effective_order = true};
    for (const RealTranslations& real : read_real_translations()) {
        SCOPED_TRACE(real.system);
        const auto expected =
            real.expected.at("sentence_bleu_first20_effective_order").get<std::vector<double>>();
        for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_NEAR(
                bleu_score(bleu_statistics(
                               real.corpus.hypotheses[i], real.corpus.references_of(i, 1), options),
                           options)
                    .score,
                expected[i],
                rounding * expected[i]);
    }
}

TEST(BleuTest, StatisticsMayBeSummedInAnyParts) {
    const ReferenceCorpus corpus = ReferenceCorpus::from_json(bleu_reference().at("corpora").at(0));
    const BleuStatistics whole = sum_over(corpus, 2, {});
    BleuStatistics parts[2];
    for (std::size_t i = 0; i < corpus.hypotheses.size(); ++i)
        parts[i % 2] += bleu_statistics(corpus.hypotheses[i], corpus.references_of(i, 2), {});

    // As ranks do it, with plain numbers.
    BleuStatistics sum;
    for (std::size_t i = 0; i < sum.values.size(); ++i)
        sum.values[i] = parts[0].values[i] + parts[1].values[i];

    EXPECT_EQ(sum, whole);
}

TEST(BleuTest, NothingScoresZero) {
    EXPECT_EQ(bleu_score({}, {}).score, 0);
    const std::string_view reference = "some words";
    EXPECT_EQ(bleu_score(bleu_statistics("", {&reference, 1}, {}), {}).score, 0);
}

TEST(BleuTest, BadUtf8IsAnError) {
    const std::string_view reference = "a";
    EXPECT_THROW(bleu_statistics("caf\xe9", {&reference, 1}, {}), BadData);
}

}  // namespace
}  // namespace hetseq
