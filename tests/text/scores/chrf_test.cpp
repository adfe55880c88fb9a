#include "hetseq/text/scores/chrf.hpp"

#include <gtest/gtest.h>

#include "text/bleu_reference.hpp"

namespace hetseq {
namespace {

ChrfStatistics chrf_sum_over(const ReferenceCorpus& corpus,
                             std::size_t references,
                             const ChrfOptions& options) {
    ChrfStatistics sum;
    for (std::size_t i = 0; i < corpus.hypotheses.size(); ++i)
        sum += chrf_statistics(corpus.hypotheses[i], corpus.references_of(i, references), options);
    return sum;
}

TEST(ChrfTest, EqualsSacrebleuOnRandomText) {
    for (const auto& expected : bleu_reference().at("corpora")) {
        const ReferenceCorpus corpus = ReferenceCorpus::from_json(expected);
        for (const auto& item : expected.at("chrf")) {
            SCOPED_TRACE(item.dump());
            const ChrfOptions options{.word_order = item.at("word_order").get<int>(),
                                      .lowercase = item.at("lowercase").get<bool>()};
            const auto references = item.at("references").get<std::size_t>();
            auto wanted = item.at("statistics").get<std::vector<std::int64_t>>();
            wanted.resize(3 * ChrfStatistics::orders);

            const ChrfStatistics statistics = chrf_sum_over(corpus, references, options);

            EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), statistics.values.begin()));
            const double score = chrf_score(statistics);
            EXPECT_EQ(score, item.at("score").get<double>());
            EXPECT_EQ(score_line(as_metric(score, options, references), 2),
                      item.at("line").get<std::string>());
        }
    }
}

TEST(ChrfTest, EqualsSacrebleuOnNewstest2017) {
    if (!std::filesystem::exists(real_translations()))
        GTEST_SKIP() << "no translations in " << real_translations() << " (HETSEQ_TEST_DATA)";
    for (const RealTranslations& real : read_real_translations()) {
        SCOPED_TRACE(real.system);
        EXPECT_EQ(chrf_score(chrf_sum_over(real.corpus, 1, {})),
                  real.expected.at("chrf2").get<double>());
        EXPECT_EQ(chrf_score(chrf_sum_over(real.corpus, 1, {.word_order = 2})),
                  real.expected.at("chrf2pp").get<double>());
    }
}

TEST(ChrfTest, NothingScoresZero) {
    const std::string_view reference = "some words";
    EXPECT_EQ(chrf_score({}), 0);
    EXPECT_EQ(chrf_score(chrf_statistics("", {&reference, 1}, {})), 0);
}

}  // namespace
}  // namespace hetseq
