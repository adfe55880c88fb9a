#include "hetseq/report/page.hpp"

#include <gtest/gtest.h>

#include "report/occurrences.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::occurrences;
using testing::HasSubstr;
using testing::Not;

RunRecord run_named(const std::string& name) {
    RunRecord run;
    run.name = name;
    run.options = {{"task", "bert"}, {"lr", name}};
    run.metrics.train["loss"] = {{1, 2}, {3, 2}};
    run.metrics.train["mlm"] = {{1, 2}, {2, 1}};
    run.metrics.train["nsp"] = {{1, 2}, {1, 1}};
    run.metrics.valid["loss"] = {{2}, {2.5}};
    run.metrics.valid["nsp"] = {{2}, {1}};
    run.metrics.valid["mlm_accuracy"] = {{2}, {0.5}};
    run.metrics.compute_ms = {8, 4};
    run.metrics.step_ms = 10;
    run.metrics.last_update = 2;
    return run;
}

TEST(PageTest, HasAFigureForEachTermAndMetric) {
    const std::string page = report_page(std::vector{run_named("a")});

    for (const char* title :
         {"Loss", "Loss: mlm", "Loss: nsp", "Validation: mlm_accuracy <small>%</small>"})
        EXPECT_EQ(occurrences(page, std::string("<figcaption>") + title + "</figcaption>"), 1)
            << title;
    EXPECT_THAT(page, Not(HasSubstr("Validation: nsp")));
    EXPECT_THAT(page, HasSubstr("mlm_accuracy 50 %"));
}

TEST(PageTest, AMetricThatIsAShareIsDrawnInPercentAsTheTableShowsIt) {
    RunRecord run = run_named("a");
    run.metrics.valid["accuracy"] = {{1, 2}, {0.125, 0.25}};
    run.metrics.valid["bleu"] = {{1, 2}, {0.5, 12.5}};

    const std::string page = report_page(std::vector{run});

    EXPECT_THAT(page, HasSubstr("Validation: accuracy <small>%</small>"));
    EXPECT_THAT(page, HasSubstr("accuracy 25 %, bleu 12.5"));
    EXPECT_THAT(page, HasSubstr("validation: 25"));
    EXPECT_THAT(page, HasSubstr("<figcaption>Validation: bleu</figcaption>"));
}

TEST(PageTest, RatesAndSharesAreInTheUnitOfTheRuns) {
    RunRecord run = run_named("a");
    run.metrics.train["samples_per_second"] = {{1, 2}, {7, 7}};
    run.metrics.train["units_per_second"] = {{1, 2}, {900, 900}};
    run.allocations = {{1, {6, 2}}};
    run.summary.emplace();
    run.summary->unit = "samples";
    const std::string samples = report_page(std::vector{run});
    EXPECT_THAT(samples, HasSubstr("Rate <small>samples/s</small>"));
    EXPECT_THAT(samples, HasSubstr("samples by rank"));
    EXPECT_THAT(samples, HasSubstr("6 of 8 samples"));

    RunRecord of_tokens = run;
    of_tokens.summary->unit = "tokens";
    const std::string tokens = report_page(std::vector{of_tokens});
    EXPECT_THAT(tokens, HasSubstr("Rate <small>tokens/s</small>"));
    EXPECT_THAT(tokens, HasSubstr("units of cost by rank"));
    EXPECT_THAT(report_page(std::vector{run, of_tokens}),
                HasSubstr("Rate <small>samples/s</small>"));
}

TEST(PageTest, AShareOfABoundIsNoMoreThanAll) {
    RunRecord run = run_named("a");
    run.summary.emplace();
    run.summary->numbers = {{"balance.achieved", 1.14}};

    EXPECT_THAT(report_page(std::vector{run}),
                HasSubstr("<th scope=\"row\">of the bound</th><td>100 %</td>"));
}

TEST(PageTest, ASingleTermIsTheLoss) {
    RunRecord run = run_named("a");
    run.metrics.train.erase("mlm");

    EXPECT_THAT(report_page(std::vector{run}), Not(HasSubstr("Loss: nsp")));
}

TEST(PageTest, RunsShareCurvesAndHaveBarsOfTheirOwn) {
    const std::string page = report_page(std::vector{run_named("a"), run_named("b")});

    EXPECT_EQ(occurrences(page, "<figcaption>Loss</figcaption>"), 1);
    EXPECT_THAT(page, HasSubstr("a, training"));
    EXPECT_THAT(page, HasSubstr("b, validation"));
    EXPECT_EQ(occurrences(page, "An update&#39;s time by rank: "), 4);  // captions and labels
    EXPECT_THAT(page, HasSubstr("Options that differ"));
}

TEST(PageTest, WithoutASummaryTimesComeFromTheLines) {
    const std::string page = report_page(std::vector{run_named("a")});

    EXPECT_THAT(page, HasSubstr("rank 1\nforward and backward: 4 ms"));
    EXPECT_THAT(page, HasSubstr("rank 1\nall else: 6 ms"));
    EXPECT_THAT(page, Not(HasSubstr("against its bound")));
}

TEST(PageTest, TheBoundIsComparedWithWhatWasMeasured) {
    RunRecord run = run_named("a");
    run.summary.emplace();
    run.summary->status = "finished";
    run.summary->numbers = {
        {"balance.bound_ms", 8}, {"balance.measured_ms", 10}, {"balance.achieved", 0.8}};
    run.summary->advice = {"use <fewer> ranks"};

    const std::string page = report_page(std::vector{run});

    EXPECT_THAT(page, HasSubstr("measured\n10 ms"));
    EXPECT_THAT(page, HasSubstr("bound (fractions allowed, no communication)\n8 ms"));
    EXPECT_THAT(page, HasSubstr("<th scope=\"row\">of the bound</th><td>80 %</td>"));
    EXPECT_THAT(page, HasSubstr("use &lt;fewer&gt; ranks"));
}

TEST(PageTest, APipelineIsComparedWithItsPlan) {
    RunRecord run = run_named("a");
    run.summary.emplace();
    run.summary->workers = {
        {.stages = 3, .planned_ms = 20, .ms = 25, .planned_bubble = 0.1, .bubble = 0.2},
        {.stages = 1, .ms = 24}};
    run.summary->layouts = {{"two workers", 30}, {"replicas", 12, false}};

    const std::string page = report_page(std::vector{run});

    EXPECT_THAT(page,
                HasSubstr("3 stages: forward and backward 25 ms (planned: 20), stages wait 20 % "
                          "(planned: 10 %); 1 stage: forward and backward 24 ms, stages wait 0 %"));
    EXPECT_THAT(page, HasSubstr("two workers 30 ms; replicas does not fit"));
}

TEST(PageTest, WhatIsMissingAndWhatHappenedIsTold) {
    RunRecord run = run_named("a");
    run.missing = {"There is no summary.json."};
    run.metrics.events = {{7, "skipped, <script>"}};
    run.metrics.events_left_out = 3;

    const std::string page = report_page(std::vector{run});

    EXPECT_THAT(page, HasSubstr("There is no summary.json."));
    EXPECT_THAT(page, HasSubstr("skipped, &lt;script&gt;"));
    EXPECT_THAT(page, HasSubstr("a: 4 events"));
    EXPECT_THAT(page, HasSubstr("and 3 more"));
}

TEST(PageTest, NeedsNothingElse) {
    const std::string page = report_page(std::vector{run_named("a"), run_named("b")});

    for (const char* foreign : {"http", "<script", "<link", "@import", "url("})
        EXPECT_THAT(page, Not(HasSubstr(foreign)));
}

TEST(PageTest, ARunWithoutAnythingIsAPage) {
    RunRecord run;
    run.name = "empty";

    EXPECT_THAT(report_page(std::vector{run}), HasSubstr("</html>"));
}

}  // namespace
}  // namespace hetseq
