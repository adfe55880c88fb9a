#include "hetseq/report/run_record.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::TemporaryFolder;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* lines =
    R"({"kind":"train","update":2,"epoch":1,"loss":2.5,"lr":0.5,"samples":16,"units":16,"samples_per_second":800,"step_ms":10,"rank_compute_ms":[8,4],"allocation":[6,2]}
{"kind":"event","update":3,"message":"skipped"}
{"kind":"train","update":4,"epoch":1,"loss":null,"lr":0.25,"samples":16,"units":16,"samples_per_second":400,"step_ms":20,"rank_compute_ms":[10,6],"allocation":[4,4]}
{"kind":"valid","update":4,"epoch":1,"loss":1.5,"accuracy":0.75,"samples":100,"seconds":0.5,"best":true}
)";

constexpr const char* summary =
    R"({"status":"finished","updates":4,"step_ms":{"median":15,"p10":10,"p90":20},
"balance":{"policy":"auto","bound_ms":12.5,"equal_ms":null},
"ranks":[{"rank":0,"host":"n1","device":"V100","compute_ms":9,"wait_ms":1}],"advice":["do less"]})";

TemporaryFolder& write_run(TemporaryFolder& folder) {
    folder.write("config.cfg", "# of a run\ntask = mnist\nlr=0.5\nname =\n");
    folder.write("metrics.jsonl", lines);
    folder.write("summary.json", summary);
    folder.write(
        "allocations.json",
        R"({"ranks":2,"allocations":[{"update":1,"units":[6,2]},{"update":3,"units":[4,4]}]})");
    return folder;
}

TEST(RunRecordTest, ARanksNameSaysHowItComputes) {
    TemporaryFolder folder;
    write_run(folder);
    folder.write("summary.json", R"({"status":"finished","ranks":[
        {"host":"n1","device":"V100","precision":"fp16","recomputed_layers":12},
        {"host":"n2","device":"A100","precision":"bf16","recomputed_layers":1},
        {"host":"n3","device":"P100","precision":"fp32","recomputed_layers":0},
        {"host":"n4","device":"K80"}]})");

    const RunRecord run = read_run(folder.path().string());

    std::vector<std::string> names;
    for (const RunSummary::Rank& rank : run.summary->ranks)
        names.push_back(rank.name);
    EXPECT_THAT(names,
                ElementsAre("rank 0, n1, V100, fp16, 12 layers recomputed",
                            "rank 1, n2, A100, bf16, 1 layer recomputed",
                            "rank 2, n3, P100",
                            "rank 3, n4, K80"));
}

TEST(RunRecordTest, WhatWasPlannedForAPipelineIsRead) {
    TemporaryFolder folder;
    write_run(folder);
    folder.write("summary.json", R"({"status":"finished",
        "workers":[{"ranks":[2,0],"micro_batch":4,"planned_ms":9,"ms":10,"planned_bubble":0.25,"bubble":0.5}],
        "layouts":[{"name":"one","ranks":2,"planned_ms":11,"fits":true},
                   {"name":"two","ranks":1,"planned_ms":8,"fits":false}]})");

    const RunRecord run = read_run(folder.path().string());

    ASSERT_EQ(run.summary->workers.size(), 1U);
    EXPECT_EQ(run.summary->workers[0].stages, 2U);
    EXPECT_EQ(run.summary->workers[0].ms, 10);
    EXPECT_EQ(run.summary->workers[0].planned_bubble, 0.25);
    ASSERT_EQ(run.summary->layouts.size(), 2U);
    EXPECT_EQ(run.summary->layouts[0].name, "one");
    EXPECT_FALSE(run.summary->layouts[1].fits);
}

TEST(RunRecordTest, RunsAreNamedWithoutTheFoldersThatAllLieIn) {
    TemporaryFolder folder;
    const auto names_of = [&](const std::vector<std::string>& runs) {
        std::vector<std::string> folders, names;
        for (const std::string& run : runs) {
            std::filesystem::create_directories(folder.path() / run);
            folder.write(run + "/config.cfg", "task = mnist\n");
            folders.push_back((folder.path() / run).string());
        }
        for (const RunRecord& run : read_runs(folders))
            names.push_back(run.name);
        return names;
    };

    EXPECT_THAT(names_of({"runs/first"}), ElementsAre("first"));
    EXPECT_THAT(names_of({"runs/first", "runs/second/"}), ElementsAre("first", "second"));
    EXPECT_THAT(names_of({"runs/a/x", "runs/b/x"}), ElementsAre("a/x", "b/x"));
    EXPECT_THAT(names_of({"runs/a", "runs/a/inner"}), ElementsAre("a", "a/inner"));
    EXPECT_THAT(names_of({"runs/a", "runs/a"}), ElementsAre("a", "a"));
    EXPECT_THAT(names_of({"runs/a/."}), ElementsAre("a"));
    EXPECT_THAT(names_of({"runs/a/inner/.."}), ElementsAre("a"));
}

TEST(RunRecordTest, AFinishedRunIsReadWhole) {
    TemporaryFolder folder;

    const RunRecord run = read_run(write_run(folder).path().string() + "/");

    EXPECT_EQ(run.name, folder.path().string());
    EXPECT_THAT(run.missing, IsEmpty());
    EXPECT_EQ(run.options.at("task"), "mnist");
    EXPECT_EQ(run.options.at("lr"), "0.5");
    EXPECT_EQ(run.options.at("name"), "");
    EXPECT_THAT(run.metrics.train.at("loss").x, ElementsAre(2, 4));
    EXPECT_EQ(run.metrics.train.at("loss").y[0], 2.5);
    EXPECT_TRUE(std::isnan(run.metrics.train.at("loss").y[1]));
    EXPECT_EQ(run.metrics.train.count("samples"), 0U);
    EXPECT_THAT(run.metrics.valid.at("accuracy").y, ElementsAre(0.75));
    EXPECT_EQ(run.metrics.last_update, 4);
    EXPECT_EQ(run.metrics.step_ms, 15);
    EXPECT_THAT(run.metrics.compute_ms, ElementsAre(9, 5));
    ASSERT_EQ(run.metrics.events.size(), 1U);
    EXPECT_EQ(run.metrics.events[0].message, "skipped");
    ASSERT_TRUE(run.summary);
    EXPECT_EQ(run.summary->number("balance.bound_ms"), 12.5);
    EXPECT_FALSE(run.summary->number("balance.equal_ms"));
    EXPECT_EQ(run.summary->ranks.at(0).name, "rank 0, n1, V100");
    EXPECT_EQ(run.summary->ranks.at(0).times[RankTime::wait], 1);
    EXPECT_FALSE(run.summary->ranks.at(0).times[RankTime::data]);
    EXPECT_THAT(run.summary->advice, ElementsAre("do less"));
    ASSERT_EQ(run.allocations.size(), 2U);
    EXPECT_EQ(run.allocations[1].update, 3);
    EXPECT_THAT(run.allocations[1].units, ElementsAre(4, 4));
}

TEST(RunRecordTest, AKilledRunIsReadAsFarAsItWent) {
    TemporaryFolder folder;
    write_run(folder);
    folder.write("metrics.jsonl", std::string(lines) + R"({"kind":"train","update":6,"lo)");
    std::filesystem::remove(folder / "summary.json");
    std::filesystem::remove(folder / "allocations.json");

    const RunRecord run = read_run(folder.path().string());

    EXPECT_THAT(run.missing, Contains("The last line of metrics.jsonl is cut off."));
    EXPECT_THAT(run.missing, Contains(HasSubstr("There is no summary.json")));
    EXPECT_THAT(run.missing, Contains(HasSubstr("There is no allocations.json")));
    EXPECT_EQ(run.metrics.last_update, 4);
    EXPECT_FALSE(run.summary);
    ASSERT_EQ(run.allocations.size(), 2U);
    EXPECT_EQ(run.allocations[1].update, 4);
}

// Any byte of any file may be the last one.
TEST(RunRecordTest, FilesCutOffAnywhereAreNoError) {
    TemporaryFolder folder;
    for (const char* name : {"config.cfg", "metrics.jsonl", "summary.json", "allocations.json"}) {
        write_run(folder);
        const std::string whole = folder.read(name);
        for (std::size_t length = 0; length < whole.size(); ++length) {
            folder.write(name, whole.substr(0, length));
            EXPECT_NO_THROW(read_run(folder.path().string())) << name << " " << length;
        }
    }
}

TEST(RunRecordTest, WhatIsNotHetseqsIsLeftOutAndTold) {
    TemporaryFolder folder;
    write_run(folder);
    folder.write("metrics.jsonl",
                 "no JSON\n{}\n[1]\n{\"kind\":1}\n{\"kind\":\"train\",\"update\":\"x\"}\n"
                 "{\"kind\":\"train\",\"update\":7,\"step_ms\":\"x\"}\n" +
                     std::string(lines));
    folder.write("summary.json", "[]");
    folder.write("allocations.json",
                 R"({"allocations":[{"update":1e300,"units":[-5,1e300,"x"]}]})");

    const RunRecord run = read_run(folder.path().string());

    EXPECT_THAT(run.missing, Contains(HasSubstr("6 lines of metrics.jsonl")));
    EXPECT_THAT(run.missing, Contains(HasSubstr("summary.json is cut off or not hetseq's")));
    EXPECT_THAT(run.missing, Contains(HasSubstr("allocations.json is cut off or not hetseq's")));
    EXPECT_THAT(run.metrics.train.at("loss").x, ElementsAre(2, 4));
}

TEST(RunRecordTest, LinesWithoutTimesByRankAreInNoMean) {
    TemporaryFolder folder;
    write_run(folder);
    folder.write(
        "metrics.jsonl",
        R"({"kind":"train","update":1,"loss":2,"step_ms":100,"rank_compute_ms":[],"allocation":[6,2]}
{"kind":"train","update":2,"loss":1,"step_ms":10,"rank_compute_ms":[8,4],"allocation":[6,2]}
)");

    const RunRecord run = read_run(folder.path().string());

    EXPECT_EQ(run.metrics.step_ms, 10);
    EXPECT_THAT(run.metrics.compute_ms, ElementsAre(8, 4));
    EXPECT_EQ(run.metrics.train.at("loss").size(), 2U);
}

TEST(RunRecordTest, LinesOfAContinuedRunReplaceLaterOnes) {
    TemporaryFolder folder;
    std::string text;
    for (const int update : {10, 20, 30, 20, 30})
        text += R"({"kind":"train","update":)" + std::to_string(update) + R"(,"loss":)" +
                std::to_string(text.size()) + "}\n";
    folder.write("metrics.jsonl", text);

    const RunRecord run = read_run(folder.path().string());

    const Series& loss = run.metrics.train.at("loss");
    EXPECT_THAT(loss.x, ElementsAre(10, 20, 30));
    EXPECT_TRUE(std::is_sorted(loss.y.begin(), loss.y.end()));
}

TEST(RunRecordTest, ASummaryOfAnEarlierPartIsTold) {
    TemporaryFolder folder;
    write_run(folder);
    folder.write("summary.json", R"({"status":"stopped","updates":2})");

    EXPECT_THAT(read_run(folder.path().string()).missing, Contains(HasSubstr("is older than")));
}

TEST(RunRecordTest, AFolderWithoutARunIsNamed) {
    TemporaryFolder folder;
    for (const std::string& path : {folder.path().string(), (folder / "absent").string()}) {
        try {
            read_run(path);
            FAIL() << "read " << path;
        } catch (const MissingInput& error) {
            EXPECT_THAT(error.what(), HasSubstr(path));
        }
    }
}

}  // namespace
}  // namespace hetseq
