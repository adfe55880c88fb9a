#include "hetseq/train/record/run_folder.hpp"

#include <cstdlib>
#include <fstream>
#include <optional>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunFolderTest : public testing::Test {
protected:
    RunFolderTest()
        : base_{world_.broadcast(
              (fs::temp_directory_path() / ("hetseq_run_folder_" + std::to_string(::getpid())))
                  .string(),
              0)} {
        if (is_first())
            fs::create_directories(base_);
        world_.barrier();
    }
    ~RunFolderTest() override {
        world_.barrier();
        if (is_first())
            fs::remove_all(base_);
    }

    bool is_first() const { return world_.rank() == 0; }
    // A run that has ended.
    void begin(const fs::path& path, const std::string& text) const {
        RunFolder folder(world_, path, ExistingRun::overwrite);
        folder.begin(world_, text, {});
    }
    // For what it knows of paths.
    RunFolder at(const fs::path& path) const {
        return RunFolder(world_, path, ExistingRun::overwrite, FolderUse::look);
    }
    void save(const fs::path& run, std::int64_t update) const {
        if (is_first()) {
            const CheckpointFolder checkpoints(run / "checkpoints");
            fs::create_directories(checkpoints.path());
            const FileDigest digest =
                write_atomically(checkpoints.begin(update) / "state.json", "saved");
            checkpoints.commit(update, {{{"state.json", digest}}});
        }
        world_.barrier();
    }
    bool has_checkpoint(const fs::path& run, std::int64_t update) const {
        return fs::exists(CheckpointFolder(run / "checkpoints").of_update(update) / "state.json");
    }
    void touch(const fs::path& file) const {
        if (is_first())
            std::ofstream(file) << "earlier";
        world_.barrier();
    }
    static std::string text_of(const fs::path& file) {
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    // The same on all ranks.
    template <class Function>
    std::optional<ExitCode> code_of(Function&& function, std::string& text) const {
        std::optional<ExitCode> code;
        try {
            function();
        } catch (const AgreedError& error) {
            code = error.code();
            text = error.what();
        }
        for (const std::string& other : world_.all_gather(text))
            EXPECT_EQ(other, text);
        return code;
    }

    HostComm world_ = test::world();
    fs::path base_;
};

TEST_F(RunFolderTest, HoldsTheConfigurationOnceBegun) {
    RunFolder folder(world_, base_ / "a" / "run", ExistingRun::refuse);
    EXPECT_FALSE(fs::exists(base_ / "a"));
    world_.barrier();

    folder.begin(world_, "task = mnist\n", {{"config.json", "{}"}});

    EXPECT_EQ(text_of(folder.config()), "task = mnist\n");
    EXPECT_EQ(text_of(folder.model_config()), "{}");
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsRefusedOnAllRanks) {
    begin(base_ / "run", "task = mnist\n");
    std::string text;

    const auto code = code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::refuse); }, text);

    EXPECT_EQ(code, ExitCode::config);
    EXPECT_THAT(text, HasSubstr("holds a run already"));
    EXPECT_THAT(text, HasSubstr("--overwrite"));
    EXPECT_EQ(text_of(at(base_ / "run").config()), "task = mnist\n");
}

TEST_F(RunFolderTest, AFolderWithOtherFilesIsNotRefused) {
    touch(base_ / "notes.txt");

    EXPECT_NO_THROW(RunFolder(world_, base_, ExistingRun::refuse));
}

TEST_F(RunFolderTest, OverwritingRemovesTheFilesOfTheEarlierRunAndNoOthers) {
    begin(base_ / "run", "task = mnist\n");
    const RunFolder earlier = at(base_ / "run");
    for (const fs::path& file : {earlier.metrics(),
                                 earlier.summary(),
                                 earlier.model(),
                                 earlier.best_model(),
                                 earlier.model_config(),
                                 base_ / "run" / "vocab.txt",
                                 base_ / "run" / "notes.txt"})
        touch(file);

    RunFolder folder(world_, base_ / "run", ExistingRun::overwrite);
    EXPECT_EQ(text_of(folder.metrics()), "earlier");
    world_.barrier();
    folder.begin(world_, "task = bert\n", {});

    EXPECT_EQ(text_of(folder.config()), "task = bert\n");
    for (const fs::path& file : {folder.metrics(),
                                 folder.summary(),
                                 folder.model(),
                                 folder.best_model(),
                                 folder.model_config(),
                                 base_ / "run" / "vocab.txt"})
        EXPECT_FALSE(fs::exists(file)) << file;
    EXPECT_TRUE(fs::exists(base_ / "run" / "notes.txt"));
}

// It would remove what the start before has saved.
TEST_F(RunFolderTest, ARestartWithinAJobOverwritesNothing) {
    begin(base_ / "run", "seed = 1\n");
    save(base_ / "run", 3);
    ::setenv("HETSEQ_RESTARTED", "2", 1);
    std::string text;

    const auto code =
        code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::overwrite); }, text);

    ::unsetenv("HETSEQ_RESTARTED");
    EXPECT_EQ(code, ExitCode::config);
    EXPECT_THAT(text, HasSubstr("--overwrite in restart 2 of this job"));
    EXPECT_EQ(at(base_ / "run").checkpoints().list().size(), 1U);
}

TEST_F(RunFolderTest, AFolderThatCannotBeWrittenIsAnErrorOfAllRanks) {
    const fs::path closed = base_ / "closed";
    if (::geteuid() == 0) {
        touch(closed);  // permissions do not keep root out, a file in the way does
    } else if (is_first()) {
        fs::create_directory(closed);
        fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
    }
    world_.barrier();
    std::string text;

    const auto code =
        code_of([&] { RunFolder(world_, closed / "run", ExistingRun::refuse); }, text);

    EXPECT_EQ(code, ::geteuid() == 0 ? ExitCode::config : ExitCode::io);
    EXPECT_THAT(text, HasSubstr(closed.string()));
    EXPECT_THAT(text, HasSubstr("--save-dir"));
}

TEST_F(RunFolderTest, AFileInTheFoldersPlaceIsAWrongOptionOnAllRanks) {
    touch(base_ / "run");
    std::string text;

    const auto code = code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::refuse); }, text);

    EXPECT_EQ(code, ExitCode::config);
    EXPECT_THAT(text, HasSubstr("--save-dir"));
}

TEST_F(RunFolderTest, AFolderThatBecomesUnwritableIsAnIoErrorOnAllRanks) {
    RunFolder folder(world_, base_ / "run", ExistingRun::refuse);
    touch(base_ / "run");
    std::string text;

    const auto code = code_of([&] { folder.begin(world_, "task = mnist\n", {}); }, text);

    EXPECT_EQ(code, ExitCode::io);
    EXPECT_THAT(text, HasSubstr("--save-dir"));
}

TEST_F(RunFolderTest, AFolderWithACheckpointHoldsARunWithoutItsConfiguration) {
    save(base_ / "run", 7);
    std::string text;

    const auto code = code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::refuse); }, text);

    EXPECT_EQ(code, ExitCode::config);
    EXPECT_THAT(text, HasSubstr("checkpoints are there"));
    EXPECT_TRUE(RunFolder(world_, base_ / "run", ExistingRun::resume).holds_run());
    EXPECT_TRUE(has_checkpoint(base_ / "run", 7));
}

TEST_F(RunFolderTest, ContinuingWritesTheConfigurationAnewAndKeepsEveryCheckpoint) {
    for (const std::int64_t update : {3, 5, 9})
        save(base_ / "run", update);
    touch(base_ / "run" / "best.safetensors");
    touch(base_ / "run" / "summary.json");
    RunFolder folder(world_, base_ / "run", ExistingRun::resume);

    folder.resume(world_, 5, "task = mnist\n", {{"config.json", "{}"}});

    EXPECT_EQ(text_of(folder.config()), "task = mnist\n");
    EXPECT_EQ(text_of(folder.model_config()), "{}");
    EXPECT_EQ(text_of(folder.best_model()), "earlier");
    EXPECT_FALSE(fs::exists(folder.summary()));  // of an end that is none any more
    EXPECT_TRUE(has_checkpoint(base_ / "run", 3));
    EXPECT_TRUE(has_checkpoint(base_ / "run", 5));
    EXPECT_TRUE(fs::exists(base_ / "run/checkpoints/unused-update-00000009/state.json"));
}

TEST_F(RunFolderTest, ResultsWithoutACheckpointAreRefusedUnlessOverwritten) {
    for (const char* result : {"metrics.jsonl", "summary.json", "model.safetensors"}) {
        const fs::path run = base_ / (std::string("with-") + result);
        if (is_first())
            fs::create_directories(run);
        world_.barrier();
        touch(run / result);
        std::string text;

        const auto code = code_of([&] { RunFolder(world_, run, ExistingRun::resume); }, text);

        EXPECT_EQ(code, ExitCode::config) << result;
        EXPECT_THAT(text, HasSubstr(result));
        EXPECT_THAT(text, HasSubstr("--overwrite"));
        EXPECT_EQ(text_of(run / result), "earlier");
        EXPECT_NO_THROW(RunFolder(world_, run, ExistingRun::overwrite)) << result;
    }
}

TEST_F(RunFolderTest, ARunWhoseCheckpointsWereRemovedIsRefused) {
    begin(base_ / "run", "task = mnist\n");
    touch(base_ / "run" / "metrics.jsonl");
    const fs::path checkpoints = base_ / "run" / "checkpoints";
    for (const bool stays : {true, false}) {
        if (is_first())
            fs::remove_all(checkpoints);
        if (is_first() && stays)
            fs::create_directory(checkpoints);
        world_.barrier();
        std::string text;

        const auto code =
            code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::resume); }, text);

        EXPECT_EQ(code, ExitCode::config) << stays;
        EXPECT_THAT(text, HasSubstr("cannot be continued"));
    }
}

// Also where its configuration is gone.
TEST_F(RunFolderTest, ARunThatDiedBeforeItsFirstCheckpointBeginsAnew) {
    for (const bool has_config : {true, false}) {
        begin(base_ / "run", "task = mnist\n");
        touch(base_ / "run" / "metrics.jsonl");
        if (is_first() && !has_config)
            fs::remove(base_ / "run" / "config.cfg");
        world_.barrier();
        RunFolder folder(world_, base_ / "run", ExistingRun::resume);

        folder.begin(world_, "task = mnist\n", {});

        EXPECT_FALSE(fs::exists(folder.metrics())) << has_config;
    }
}

TEST_F(RunFolderTest, AFolderThatIsOnlyLookedAtStaysAsItIs) {
    if (is_first())
        fs::create_directories(base_ / "run");
    world_.barrier();

    const RunFolder folder(world_, base_ / "run", ExistingRun::resume, FolderUse::look);

    EXPECT_TRUE(fs::is_empty(base_ / "run"));
}

TEST_F(RunFolderTest, TheLeaseGoesWithTheRun) {
    if (is_first())
        fs::create_directories(base_ / "run");
    world_.barrier();
    {
        const RunFolder folder(world_, base_ / "run", ExistingRun::resume);
        EXPECT_TRUE(fs::exists(base_ / "run/lease.json"));
        world_.barrier();
    }
    world_.barrier();
    EXPECT_FALSE(fs::exists(base_ / "run/lease.json"));
}

TEST_F(RunFolderTest, WhatSomebodyRemovesIsWrittenAnewWhereItIsKnown) {
    RunFolder folder(world_, base_ / "run", ExistingRun::resume);
    folder.begin(world_, "task = mnist\n", {{"vocab.txt", "[PAD]"}});
    if (is_first()) {
        fs::remove(folder.config());
        fs::remove(base_ / "run/vocab.txt");
    }
    world_.barrier();

    folder.look_after_parts();
    world_.barrier();

    EXPECT_EQ(text_of(folder.config()), "task = mnist\n");
    EXPECT_EQ(text_of(base_ / "run/vocab.txt"), "[PAD]");
}

}  // namespace
}  // namespace hetseq
