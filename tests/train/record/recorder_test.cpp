#include "hetseq/train/record/recorder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/run_history.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using Json = nlohmann::json;

class RecorderTest : public testing::Test {
protected:
    RecorderTest()
        : path_{std::filesystem::temp_directory_path() /
                ("hetseq_recorder_" + std::to_string(::getpid()))},
          folder_{HostComm::serial(), path_, ExistingRun::overwrite} {
        folder_.begin(HostComm::serial(), "task = mnist\n", {});
    }
    ~RecorderTest() override { std::filesystem::remove_all(path_); }

    Recorder make(std::int64_t interval, std::int64_t first_update = 1) {
        return Recorder(&folder_,
                        0,
                        {.log_interval = interval,
                         .total_updates = 4,
                         .first_update = first_update,
                         .loss_terms = {"mlm", "nsp"}});
    }
    std::vector<Json> lines() const {
        std::ifstream file(folder_.metrics());
        std::vector<Json> lines;
        for (std::string line; std::getline(file, line);)
            lines.push_back(Json::parse(line));
        return lines;
    }

    // Contents by name.
    std::map<std::string, std::string> event_files() const {
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.tensorboard())) {
            std::ifstream file(entry.path(), std::ios::binary);
            files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
        }
        return files;
    }
    // How many of TensorBoard's records bear `tag`; their encoding is tested with EventFile.
    int events_with(const std::string& tag) const {
        int count = 0;
        for (const auto& [name, text] : event_files())
            for (auto at = text.find(tag); at != std::string::npos; at = text.find(tag, at + 1))
                ++count;
        return count;
    }

    std::filesystem::path path_;
    RunFolder folder_;
};

TEST_F(RecorderTest, WritesTheMeanOfEachIntervalAndTheRest) {
    Recorder recorder = make(3);
    for (int update = 1; update <= 4; ++update)
        recorder.train({.update = update,
                        .epoch = 1,
                        .losses = {1.0 * update, 10.0},
                        .lr = 0.5,
                        .samples = 8,
                        .units = 8,
                        .step_ms = 2.0 * update,
                        .allocation = {6, 2}});

    ASSERT_EQ(lines().size(), 2U);
    const Json first = lines()[0];
    EXPECT_EQ(first["kind"], "train");
    EXPECT_EQ(first["update"], 3);
    EXPECT_DOUBLE_EQ(first["mlm"], 2);
    EXPECT_DOUBLE_EQ(first["loss"], 12);
    EXPECT_EQ(first["samples"], 24);
    EXPECT_DOUBLE_EQ(first["step_ms"], 4);
    EXPECT_EQ(first["allocation"], (Json::array({6, 2})));
    EXPECT_DOUBLE_EQ(lines()[1]["mlm"], 4);
}

TEST_F(RecorderTest, AMeanLeavesOutBatchesWithoutWeight) {
    Recorder recorder = make(2);
    for (int update = 1; update <= 4; ++update)
        recorder.train(
            {.update = update,
             .losses = {2, update == 2 ? 3.0 : 0.0},
             .weightless = update == 2 ? std::vector<std::size_t>{} : std::vector<std::size_t>{1},
             .step_ms = 1});

    ASSERT_EQ(lines().size(), 2U);
    EXPECT_EQ(lines()[0]["nsp"], 3);
    EXPECT_EQ(lines()[0]["loss"], 5);
    EXPECT_TRUE(lines()[1]["nsp"].is_null());  // none of its batches had any
    EXPECT_EQ(lines()[1]["loss"], 2);
    EXPECT_EQ(events_with("train/nsp"), 1);
    EXPECT_EQ(events_with("train/loss"), 2);
}

// Its loss is a number where the gradient is none.
TEST_F(RecorderTest, AMeanLeavesOutSkippedUpdates) {
    Recorder recorder = make(2);
    recorder.train({.update = 1, .losses = {2, 0}, .step_ms = 1});
    recorder.train({.update = 2, .losses = {9, 0}, .is_applied = false, .step_ms = 1});

    ASSERT_EQ(lines().size(), 1U);
    EXPECT_EQ(lines()[0]["loss"], 2);
}

TEST_F(RecorderTest, WritesValidationsAndEvents) {
    Recorder recorder = make(1);
    recorder.valid(
        4,
        1,
        {.losses = {{"mlm", 2}, {"nsp", 0.5}}, .metrics = {{"mlm_accuracy", 0.25}}, .samples = 9},
        true);
    recorder.event(4, "skipped");

    EXPECT_DOUBLE_EQ(lines()[0]["loss"], 2.5);
    EXPECT_DOUBLE_EQ(lines()[0]["mlm_accuracy"], 0.25);
    EXPECT_EQ(lines()[0]["best"], true);
    EXPECT_EQ(lines()[0]["best_by"], "loss:min");
    EXPECT_EQ(lines()[1]["kind"], "event");
    EXPECT_EQ(lines()[1]["message"], "skipped");
}

TEST_F(RecorderTest, WritesTheSameNumbersForTensorBoard) {
    Recorder recorder = make(2);
    for (int update = 1; update <= 4; ++update)
        recorder.train({.update = update,
                        .losses = {0.5, 0.25},
                        .samples = 8,
                        .units = 24,
                        .step_ms = 4,
                        .allocation = {6, 2},
                        .compute_ms = {3, 1}});
    recorder.valid(4, 1, {.losses = {{"mlm", 2}}, .metrics = {{"mlm_accuracy", 0.25}}}, true);
    recorder.event(4, "skipped");

    for (const char* tag : {"train/loss",
                            "train/mlm",
                            "train/nsp",
                            "train/lr",
                            "train/grad_norm",
                            "train/samples_per_second",
                            "train/units_per_second",
                            "train/step_ms",
                            "units/rank-1",
                            "compute_ms/rank-0"})
        EXPECT_EQ(events_with(tag), 2) << tag;
    EXPECT_EQ(events_with("valid/loss"), 1);
    EXPECT_EQ(events_with("valid/mlm_accuracy"), 1);
    EXPECT_EQ(events_with("skipped"), 0);
    EXPECT_DOUBLE_EQ(lines()[0]["samples_per_second"], 2000);
    EXPECT_DOUBLE_EQ(lines()[0]["units_per_second"], 6000);
}

TEST_F(RecorderTest, AnEarlierRunsEventsAreRemovedWithIt) {
    make(1).train({.update = 1, .losses = {0.5, 0.25}, .samples = 8, .step_ms = 4});
    ASSERT_FALSE(std::filesystem::is_empty(folder_.tensorboard()));

    folder_.begin(HostComm::serial(), "task = mnist\n", {});

    EXPECT_TRUE(std::filesystem::is_empty(folder_.tensorboard()));
}

TEST_F(RecorderTest, NumbersForTensorBoardThatCannotBeWrittenAreKept) {
    std::ofstream{folder_.tensorboard()} << "in the way";
    Recorder recorder = make(1);
    recorder.train({.update = 1, .losses = {0.5, 0.25}, .samples = 8, .step_ms = 4});
    std::filesystem::remove(folder_.tensorboard());

    recorder.train({.update = 2, .losses = {0.5, 0.25}, .samples = 8, .step_ms = 4});

    EXPECT_EQ(events_with("train/loss"), 2);
}

// That file's session starts at the update after the checkpoint's: TensorBoard then forgets the
// later ones of the file before.
TEST_F(RecorderTest, AContinuedRunWritesAFileOfItsOwnThatReplacesLaterUpdates) {
    const auto train = [&](Recorder recorder, int begin, int end) {
        for (int update = begin; update <= end; ++update)
            recorder.train({.update = update, .losses = {0.5, 0.25}, .samples = 8, .step_ms = 4});
    };
    train(make(1), 1, 4);
    const auto before = event_files();
    ASSERT_EQ(before.size(), 1U);

    folder_.resume(HostComm::serial(), 3, "task = mnist\n", {});
    train(make(1, 4), 4, 4);

    auto after = event_files();
    ASSERT_EQ(after.size(), 2U);
    const auto& [name, bytes] = *before.begin();
    EXPECT_EQ(after.at(name), bytes);
    after.erase(name);
    const std::string start_at_4("\x10\x04\x3a\x02\x08\x01", 6);  // step: 4, session_log: START
    EXPECT_NE(after.begin()->second.find(start_at_4), std::string::npos);
    EXPECT_EQ(lines().size(), 4U);
}

TEST_F(RecorderTest, WhereTheTimeOfAllStartsWentIsForTensorBoardAlone) {
    Recorder recorder = make(1);
    recorder.goodput(0, {});  // no time has passed
    EXPECT_FALSE(std::filesystem::exists(folder_.tensorboard()));

    recorder.goodput(7, {.updating_s = 6, .lost_s = 2, .starts = 2, .failures = 1});

    EXPECT_EQ(events_with("goodput/share"), 1);
    EXPECT_EQ(events_with("goodput/lost"), 1);
    EXPECT_TRUE(lines().empty());
}

TEST_F(RecorderTest, OtherRanksWriteNothing) {
    Recorder recorder(&folder_, 1, {.total_updates = 4, .loss_terms = {"nll"}});
    recorder.event(1, "skipped");

    EXPECT_FALSE(std::filesystem::exists(folder_.metrics()));
    EXPECT_FALSE(std::filesystem::exists(folder_.tensorboard()));
}

TEST_F(RecorderTest, TrainingGoesOnWhereTheFolderIsGone) {
    std::filesystem::remove_all(path_);
    Recorder recorder = make(1);

    EXPECT_NO_THROW(recorder.event(1, "skipped"));
    EXPECT_NO_THROW(recorder.finish());
}

TEST_F(RecorderTest, AnIntervalThatWasSavedHalfwayIsTheSameLine) {
    const auto record = [](int update) {
        return UpdateRecord{.update = update,
                            .epoch = 1,
                            .losses = {1.0 * update, 10.0},
                            .samples = 8,
                            .units = 8,
                            .step_ms = 2};
    };
    Recorder whole = make(4);
    for (int update = 1; update <= 4; ++update)
        whole.train(record(update));
    Recorder first = make(4);
    first.train(record(1));
    first.train(record(2));
    Recorder second(&folder_,
                    0,
                    {.log_interval = 4,
                     .total_updates = 4,
                     .loss_terms = {"mlm", "nsp"},
                     .window = first.window()});
    second.train(record(3));
    second.train(record(4));

    ASSERT_EQ(lines().size(), 2U);
    for (const char* key : {"update", "loss", "mlm", "samples"})
        EXPECT_EQ(lines()[0][key], lines()[1][key]);
}

// A record's times are of the update before it.
TEST_F(RecorderTest, WaitingIsToldOfTheUpdatesWhoseTimesAreKnown) {
    const auto record = [](int update, double step_ms, std::vector<double> compute_ms) {
        return UpdateRecord{.update = update,
                            .epoch = 1,
                            .losses = {1, 10},
                            .step_ms = step_ms,
                            .allocation = {6, 2, 0},
                            .compute_ms = std::move(compute_ms)};
    };
    Recorder recorder = make(2);
    testing::internal::CaptureStderr();

    recorder.train(record(1, 10, {0, 0, 0}));
    recorder.train(record(2, 20, {8, 4, 0}));
    recorder.train(record(3, 30, {0, 12, 0}));  // rank 0 ran out of memory
    recorder.train(record(4, 40, {24, 12, 0}));

    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(lines()[0]["rank_compute_ms"], (Json{8, 4, 0}));
    EXPECT_EQ(lines()[1]["rank_compute_ms"], (Json{24, 12, 0}));
    EXPECT_EQ(lines()[1]["step_ms"], 35);
    EXPECT_THAT(log,
                testing::AllOf(testing::HasSubstr("step 15 ms  slowest rank 0 waits 20 %"),
                               testing::HasSubstr("step 35 ms  slowest rank 0 waits 20 %")));
}

TEST_F(RecorderTest, TimesOfRanksAreToldByName) {
    Recorder recorder = make(1);
    UpdateRecord record{
        .update = 1, .epoch = 1, .losses = {1, 10}, .step_ms = 10, .allocation = {6, 2}};
    record.rank_times[RankTime::data] = {3, 4};
    record.rank_times[RankTime::optimizer] = {std::nan(""), 2};

    recorder.train(record);

    EXPECT_EQ(lines()[0]["rank_data_ms"], (Json{3, 4}));
    EXPECT_EQ(lines()[0]["rank_optimizer_ms"], (Json{nullptr, 2}));
    EXPECT_FALSE(lines()[0].contains("rank_wait_ms"));
    const std::string events = event_files().begin()->second;
    EXPECT_THAT(events,
                testing::AllOf(testing::HasSubstr("data_ms/rank-1"),
                               testing::HasSubstr("optimizer_ms/rank-1"),
                               testing::Not(testing::HasSubstr("optimizer_ms/rank-0"))));
}

TEST_F(RecorderTest, EachIntervalAndTheLastUpdateHaveALine) {
    const Recorder recorder = make(3);

    EXPECT_FALSE(recorder.is_due(2));
    EXPECT_TRUE(recorder.is_due(3));
    EXPECT_TRUE(recorder.is_due(4));
}

// Standard error as a terminal while it lives.
class Terminal {
public:
    Terminal() : own_{::posix_openpt(O_RDWR | O_NOCTTY)}, former_{::dup(STDERR_FILENO)} {
        ::grantpt(own_);
        ::unlockpt(own_);
        const int other = ::open(::ptsname(own_), O_RDWR | O_NOCTTY);
        ::dup2(other, STDERR_FILENO);
        ::close(other);
    }
    ~Terminal() {
        ::dup2(former_, STDERR_FILENO);
        ::close(former_);
        ::close(own_);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    std::string shown() const {
        std::fflush(stderr);
        std::array<char, 4096> text{};
        const auto length = ::read(own_, text.data(), text.size());
        return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
    }

private:
    int own_, former_;
};

TEST_F(RecorderTest, TheLineOfProgressCountsWhatTheLogCounts) {
    const Terminal terminal;
    Recorder recorder(
        nullptr, 0, {.total_updates = 4, .loss_terms = {"mlm", "nsp"}, .unit = "tokens"});

    recorder.train({.update = 1, .losses = {1, 10}, .units = 400, .step_ms = 1000});

    EXPECT_THAT(terminal.shown(), testing::HasSubstr("400 tokens/s"));
}

TEST_F(RecorderTest, WithoutKnownTimesNoRankIsTheSlowest) {
    Recorder recorder = make(1);

    recorder.train({.update = 1,
                    .losses = {1, 10},
                    .step_ms = 10,
                    .allocation = {6, 2},
                    .compute_ms = {0, 0}});

    EXPECT_TRUE(lines()[0]["rank_compute_ms"].empty());
}

TEST_F(RecorderTest, AFolderThatHoldsARunIsRefused) {
    EXPECT_THROW(RunFolder(HostComm::serial(), path_, ExistingRun::refuse), Error);
    EXPECT_NO_THROW(RunFolder(HostComm::serial(), path_, ExistingRun::overwrite, FolderUse::look));
    EXPECT_TRUE(std::filesystem::exists(folder_.config()));
}

}  // namespace
}  // namespace hetseq
