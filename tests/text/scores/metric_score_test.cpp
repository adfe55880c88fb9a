#include "hetseq/text/scores/metric_score.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include "hetseq/text/scores/bleu.hpp"
#include "hetseq/text/scores/chrf.hpp"

#include "text/bleu_reference.hpp"

namespace hetseq {
namespace {

MetricScore plain_score(double score) {
    return {"BLEU", score, {{"nrefs", "1"}}, ""};
}

TEST(MetricScoreTest, PrintsTheJsonOfSacrebleu) {
    for (const auto& expected : bleu_reference().at("corpora")) {
        const ReferenceCorpus corpus = ReferenceCorpus::from_json(expected);
        BleuStatistics bleu;
        ChrfStatistics chrf;
        for (std::size_t i = 0; i < corpus.hypotheses.size(); ++i) {
            bleu += bleu_statistics(corpus.hypotheses[i], corpus.references_of(i, 1), {});
            chrf += chrf_statistics(corpus.hypotheses[i], corpus.references_of(i, 1), {});
        }
        const std::vector<MetricScore> scores{as_metric(bleu_score(bleu, {}), BleuOptions{}, 1),
                                              as_metric(chrf_score(chrf), ChrfOptions{}, 1)};
        const auto& json = expected.at("json");

        EXPECT_EQ(score_json({scores[0]}, 1), json.at(0).get<std::string>() + "\n");
        EXPECT_EQ(score_json(scores, 1),
                  "[\n" + json.at(0).get<std::string>() + ",\n" + json.at(1).get<std::string>() +
                      "\n]\n");
    }
}

// As Python prints a float: the shortest that reads the same.
TEST(MetricScoreTest, ScoresInJsonHaveTheirDigitsAndNoMore) {
    for (int thousandths = 0; thousandths <= 100000; ++thousandths) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.3f", thousandths / 1000.0);
        std::string expected = digits;
        while (expected.back() == '0' && expected[expected.size() - 2] != '.')
            expected.pop_back();

        ASSERT_EQ(
            score_json(plain_score(thousandths / 1000.0), 3, JsonForm::one_line),
            R"({"name":"BLEU","score":)" + expected + R"(,"signature":"nrefs:1","nrefs":"1"})");
    }
}

TEST(MetricScoreTest, LinesOfSeveralMetricsAreAligned) {
    const MetricScore bleu{"BLEU", 22.67, {{"nrefs", "1"}, {"tok", "13a"}}, "56.2/28.7"};
    const MetricScore chrf{"chrF2", 51.95, {{"nrefs", "1"}}, ""};

    EXPECT_EQ(score_lines({bleu, chrf}, 1),
              "BLEU|nrefs:1|tok:13a = 22.7 56.2/28.7\n"
              "       chrF2|nrefs:1 = 52.0\n");
    EXPECT_EQ(score_text(bleu, 2), "22.67");
}

}  // namespace
}  // namespace hetseq
