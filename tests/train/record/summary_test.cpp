#include "hetseq/train/record/summary.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/trainer.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

constexpr std::int64_t batch = 3300;
constexpr std::int64_t updates = 20;

Topology topology_of(const HostComm& world) {
    Topology topology;
    topology.hosts = 1;
    for (int rank = 0; rank < world.size(); ++rank)
        topology.ranks.push_back({.rank = rank, .host = "node", .device_name = "a CPU"});
    return topology;
}

std::vector<Precision> all_fp32(const HostComm& world) {
    return std::vector<Precision>(static_cast<std::size_t>(world.size()), Precision::fp32);
}

std::vector<std::int64_t> first_of(const HostComm& world, std::vector<std::int64_t> values) {
    values.resize(static_cast<std::size_t>(world.size()));
    return values;
}

// 1 + 1/2 + ... + 1/n
double harmonic(int n) {
    double sum = 0;
    for (int k = 1; k <= n; ++k)
        sum += 1.0 / k;
    return sum;
}

// The report of a run whose rank r needs (r + 1) ms for a unit and nothing else. The first updates,
// which do not count, took much longer.
TrainerReport report_of(const HostComm& world, SharePlan& shares) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const std::int64_t own = shares.allocation(batch)[rank];
    TrainerReport report;
    report.updates = updates;
    report.samples = updates * batch;
    for (int update = 0; update < updates; ++update) {
        const bool warms_up = update < 2;
        const double compute_ms = static_cast<double>(own) * (world.rank() + 1);
        report.times.add({.step_ms = warms_up ? 1e6 : 5000,
                          .times = {{RankTime::compute, warms_up ? 1e6 : compute_ms},
                                    {RankTime::wait, 10.0 * world.rank()},
                                    {RankTime::data, 1}},
                          .finish_ratio = world.rank(),
                          .samples = batch,
                          .units = batch,
                          .own_units = own});
    }
    return report;
}

Summary summary_of(const HostComm& world, SharePlan& shares) {
    return summarise(
        world, topology_of(world), all_fp32(world), shares, batch, report_of(world, shares), 0);
}

TEST(SummaryTest, AnEqualSplitTakesAsLongAsTheSlowestRank) {
    const HostComm world = test::world();
    SharePlan shares(world, "declared", first_of(world, {3, 1, 1, 1}));

    const Summary summary = summary_of(world, shares);

    ASSERT_TRUE(summary.equal_ms);
    EXPECT_DOUBLE_EQ(*summary.equal_ms, batch);  // n ms a unit for 1/n of the batch
}

// 3300 / (1 + 1/2 + ... + 1/n) is whole for n <= 4, and so are the shares by rate.
TEST(SummaryTest, SharesByRateReachTheBound) {
    const HostComm world = test::world();
    SharePlan shares(world, "declared", first_of(world, {3, 1, 1, 1}));

    const Summary summary = summary_of(world, shares);

    ASSERT_TRUE(summary.proportional_ms && summary.bound_ms);
    EXPECT_DOUBLE_EQ(*summary.bound_ms, batch / harmonic(world.size()));
    EXPECT_DOUBLE_EQ(*summary.proportional_ms, batch / harmonic(world.size()));
}

TEST(SummaryTest, ThePredictionIsOfTheSharesThatWereUsed) {
    const HostComm world = test::world();
    SharePlan shares(world, "declared", first_of(world, {3, 1, 1, 1}));
    // Units by rank: 3300; 2475, 825; 1980, 660, 660; 1650, 550, 550, 550.
    const std::vector<double> expected{3300, 2475, 1980, 4 * 550};

    const Summary summary = summary_of(world, shares);

    ASSERT_TRUE(summary.predicted_ms);
    EXPECT_DOUBLE_EQ(*summary.predicted_ms, expected[std::size_t(world.size()) - 1]);
}

TEST(SummaryTest, OneUnitCannotBeCutButTheBoundCutsIt) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", first_of(world, {1, 1, 1, 1}));
    const TrainerReport report = report_of(world, shares);

    const Summary summary =
        summarise(world, topology_of(world), all_fp32(world), shares, 1, report, 0);

    ASSERT_TRUE(summary.proportional_ms && summary.bound_ms);
    EXPECT_DOUBLE_EQ(*summary.proportional_ms, 1);  // rank 0 takes it
    EXPECT_DOUBLE_EQ(*summary.bound_ms, 1 / harmonic(world.size()));
}

// Nothing is known of its speed.
TEST(SummaryTest, ARankWithoutWorkIsInNoCut) {
    const HostComm world = test::world();
    SharePlan shares(world, "declared", first_of(world, {3, 0, 1, 2}));
    const std::vector<double> rates{1, 1, 1 + 1 / 3.0, 1 + 1 / 3.0 + 1 / 4.0};

    const Summary summary = summary_of(world, shares);

    ASSERT_TRUE(summary.bound_ms && summary.equal_ms);
    EXPECT_DOUBLE_EQ(*summary.bound_ms, batch / rates[std::size_t(world.size()) - 1]);
    // The slowest with an equal part: rank 0 alone, rank 2 with 1650, rank 3 with 1100.
    const std::vector<double> equal{3300, 3300, 3 * 1650, 4 * 1100};
    EXPECT_DOUBLE_EQ(*summary.equal_ms, equal[std::size_t(world.size()) - 1]);
}

TEST(SummaryTest, WithoutAnyMeasurementThereIsNothingToCompare) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", first_of(world, {1, 1, 1, 1}));

    const Summary summary =
        summarise(world, topology_of(world), all_fp32(world), shares, batch, {}, 0);

    EXPECT_FALSE(summary.equal_ms);
    EXPECT_FALSE(summary.proportional_ms);
    EXPECT_FALSE(summary.predicted_ms);
    EXPECT_FALSE(summary.bound_ms);
    EXPECT_NE(summary.json({}).find("\"bound_ms\": null"), std::string::npos);
}

TEST(SummaryTest, RatesAndTimesAreThoseOfTheSteadyState) {
    const HostComm world = test::world();
    SharePlan shares(world, "declared", first_of(world, {3, 1, 1, 1}));

    const Summary summary = summary_of(world, shares);

    EXPECT_DOUBLE_EQ(summary.samples_per_second, batch / 5.0);
    EXPECT_DOUBLE_EQ(summary.finish_ratio, world.size() - 1);  // of the slowest rank
    std::int64_t units = 0;
    for (const Summary::Rank& rank : summary.ranks) {
        const std::int64_t own = shares.allocation(batch)[static_cast<std::size_t>(rank.rank)];
        EXPECT_DOUBLE_EQ(rank.ms[RankTime::compute], static_cast<double>(own) * (rank.rank + 1));
        EXPECT_DOUBLE_EQ(rank.unit_ms, rank.rank + 1);
        EXPECT_DOUBLE_EQ(rank.ms[RankTime::wait], 10.0 * rank.rank);
        units += rank.units;
    }
    EXPECT_EQ(units, updates * batch);
}

TEST(SummaryTest, RanksOnLikeDevicesAreAClass) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", first_of(world, {1, 1, 1, 1}));

    const Summary summary = summary_of(world, shares);

    ASSERT_EQ(summary.classes().size(), 1U);
    const Summary::Class one = summary.classes().front();
    EXPECT_EQ(one.name, "a CPU of node");
    EXPECT_EQ(one.ranks, world.size());
    EXPECT_EQ(one.ms[RankTime::wait].min, 0);
    EXPECT_EQ(one.ms[RankTime::wait].avg, 5.0 * (world.size() - 1));
    EXPECT_EQ(one.ms[RankTime::wait].max, 10.0 * (world.size() - 1));
}

TEST(SummaryTest, RanksThatComputeInAnotherPrecisionAreAClassOfTheirOwn) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", first_of(world, {1, 1, 1, 1}));
    std::vector<Precision> precisions = all_fp32(world);
    precisions.back() = Precision::bf16;

    const Summary summary = summarise(
        world, topology_of(world), precisions, shares, batch, report_of(world, shares), 0);

    const std::vector<Summary::Class> classes = summary.classes();
    EXPECT_EQ(std::ssize(classes), std::min(world.size(), 2));
    EXPECT_EQ(classes.back().name, "a CPU of node, bf16");
    EXPECT_EQ(classes.back().ranks, 1);
    EXPECT_NE(summary.json({}).find("\"precision\": \"bf16\""), std::string::npos);
}

// There are 40 updates. Every fourth ends an epoch with half a batch. At the 21st the devices slow
// down and the cut changes.
TEST(SummaryTest, TimesAreOfFullBatchesThatWereCutAsTheLastOne) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", first_of(world, {1, 1, 1, 1}));
    TrainerReport report;
    report.updates = 40;
    const std::int64_t own = shares.allocation(batch)[static_cast<std::size_t>(world.rank())];
    for (int update = 0; update < 40; ++update) {
        const int part = update % 4 == 3 ? 2 : 1;
        const double slow = update < 20 ? 1 : 3;
        report.times.add(
            {.step_ms = 100 * slow / part,
             .times = {{RankTime::compute, 90 * slow / part}, {RankTime::wait, 10 * slow / part}},
             .samples = batch / part,
             .units = batch / part,
             .own_units = own / part,
             .is_full = part == 1,
             .cut_since = update < 20 ? 0 : 20});
    }

    const Summary summary =
        summarise(world, topology_of(world), all_fp32(world), shares, batch, report, 0);

    EXPECT_DOUBLE_EQ(summary.step_ms.median, 300);
    EXPECT_DOUBLE_EQ(summary.step_ms.p10, 300);
    EXPECT_DOUBLE_EQ(summary.ranks[0].ms[RankTime::compute], 270);
    EXPECT_DOUBLE_EQ(summary.ranks[0].ms[RankTime::wait], 30);
    EXPECT_NEAR(*summary.bound_ms, 270, 1);
    EXPECT_NEAR(*summary.achieved(), 0.9, 0.01);
}

Summary of_a_short_run() {
    Summary summary;
    summary.step_ms = {.median = 100, .p10 = 90, .p90 = 1893};
    summary.equal_ms = summary.proportional_ms = summary.predicted_ms = summary.bound_ms = 80;
    summary.ranks.push_back({.rank = 0, .host = "node", .device = "a CPU", .units = 2375});
    return summary;
}

TEST(SummaryTextTest, APredictionStandsBesideWhatWasMeasured) {
    Summary summary;
    summary.step_ms = {.median = 120, .p10 = 110, .p90 = 130};
    summary.layouts = {
        {.name = "one worker of all 2 ranks", .ranks = 2, .update_ms = 100, .memory = 0.5},
        {.name = "data parallelism on all 2 ranks",
         .ranks = 2,
         .update_ms = 150,
         .why_not = "rank 1 lacks 20 MiB"}};
    summary.ranks = {{.rank = 0, .host = "h", .ms = {{RankTime::compute, 90}}},
                     {.rank = 1, .host = "h", .ms = {{RankTime::compute, 30}}}};
    for (Summary::Rank& rank : summary.ranks)
        rank.stage.emplace();
    summary.workers = {
        {.ranks = {0, 1}, .micro_batch = 4, .planned_ms = 80, .planned_bubble = 0.25, .ms = 88}};

    const std::string text = summary.text({}), json = summary.json({});

    EXPECT_EQ(summary.bubble(summary.workers.front()), 0.5);
    EXPECT_THAT(
        text,
        testing::HasSubstr("layout: one worker of all 2 ranks; an update was planned to take "
                           "100 ms and took 120"));
    EXPECT_THAT(text,
                testing::HasSubstr("forward and backward took 88 ms (planned: 80, of which stages "
                                   "wait 25 %)"));
    for (const char* part : {"\"name\": \"one worker of all 2 ranks\"",
                             "\"planned_ms\": 100.0",
                             "\"fits\": true",
                             "\"memory\": 0.5",
                             "\"fits\": false",
                             "\"why_not\": \"rank 1 lacks 20 MiB\"",
                             "\"ms\": 88.0",
                             "\"bubble\": 0.5"})
        EXPECT_THAT(json, testing::HasSubstr(part));
}

TEST(SummaryTextTest, AShareOfTheBoundIsAtMostAllOfIt) {
    Summary summary = of_a_short_run();
    EXPECT_THAT(summary.text({}), testing::HasSubstr("80 % of the bound reached, communication"));

    summary.bound_ms = 125;

    EXPECT_EQ(summary.achieved(), 1);
    EXPECT_THAT(summary.text({}),
                testing::HasSubstr("100 % of the bound reached (updates took 20 % less time than "
                                   "it; it rests on speeds measured in others), communication"));
}

TEST(SummaryTextTest, WorkIsToldInTokensAndTimesInPlainDigits) {
    Summary summary = of_a_short_run();
    summary.unit = "tokens";
    summary.reported_units = 400 / 2375.0;

    const std::string text = summary.text({});

    EXPECT_THAT(text, testing::ContainsRegex("ms an update: [^\n]*  tokens  data"));
    EXPECT_THAT(text, testing::ContainsRegex("a CPU of node  *1  *400 "));
    EXPECT_THAT(text, testing::HasSubstr("(90 to 1890)"));
}

}  // namespace
}  // namespace hetseq
