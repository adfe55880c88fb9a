#include "hetseq/train/record/run_folder.hpp"

#include <fstream>
#include <optional>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
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
    RunFolder begun(const fs::path& path, const std::string& text) const {
        RunFolder folder(world_, path, ExistingRun::overwrite);
        folder.begin(world_, text, {});
        return folder;
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
    const RunFolder folder(world_, base_ / "a" / "run", ExistingRun::refuse);
    EXPECT_FALSE(fs::exists(base_ / "a"));
    world_.barrier();

    folder.begin(world_, "task = mnist\n", {{"config.json", "{}"}});

    EXPECT_EQ(text_of(folder.config()), "task = mnist\n");
    EXPECT_EQ(text_of(folder.model_config()), "{}");
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsRefusedOnAllRanks) {
    const RunFolder earlier = begun(base_ / "run", "task = mnist\n");
    std::string text;

    const auto code = code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::refuse); }, text);

    EXPECT_EQ(code, ExitCode::config);
    EXPECT_THAT(text, HasSubstr("holds a run already"));
    EXPECT_THAT(text, HasSubstr("--overwrite"));
    EXPECT_EQ(text_of(earlier.config()), "task = mnist\n");
}

TEST_F(RunFolderTest, AFolderWithOtherFilesIsNotRefused) {
    touch(base_ / "notes.txt");

    EXPECT_NO_THROW(RunFolder(world_, base_, ExistingRun::refuse));
}

TEST_F(RunFolderTest, OverwritingRemovesTheFilesOfTheEarlierRunAndNoOthers) {
    const RunFolder earlier = begun(base_ / "run", "task = mnist\n");
    for (const fs::path& file : {earlier.metrics(),
                                 earlier.summary(),
                                 earlier.model(),
                                 earlier.best_model(),
                                 earlier.model_config(),
                                 base_ / "run" / "notes.txt"})
        touch(file);

    const RunFolder folder(world_, base_ / "run", ExistingRun::overwrite);
    EXPECT_EQ(text_of(folder.metrics()), "earlier");
    world_.barrier();
    folder.begin(world_, "task = bert\n", {});

    EXPECT_EQ(text_of(folder.config()), "task = bert\n");
    for (const fs::path& file : {folder.metrics(),
                                 folder.summary(),
                                 folder.model(),
                                 folder.best_model(),
                                 folder.model_config()})
        EXPECT_FALSE(fs::exists(file)) << file;
    EXPECT_TRUE(fs::exists(base_ / "run" / "notes.txt"));
}

TEST_F(RunFolderTest, AFolderThatCannotBeWrittenIsAnIoErrorOnAllRanks) {
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

    EXPECT_EQ(code, ExitCode::io);
    EXPECT_THAT(text, HasSubstr(closed.string()));
    EXPECT_THAT(text, HasSubstr("--save-dir"));
}

TEST_F(RunFolderTest, AFileInTheFoldersPlaceIsAnIoErrorOnAllRanks) {
    touch(base_ / "run");
    std::string text;

    const auto code = code_of([&] { RunFolder(world_, base_ / "run", ExistingRun::refuse); }, text);

    EXPECT_EQ(code, ExitCode::io);
    EXPECT_THAT(text, HasSubstr("--save-dir"));
}

TEST_F(RunFolderTest, AFolderThatBecomesUnwritableIsAnIoErrorOnAllRanks) {
    const RunFolder folder(world_, base_ / "run", ExistingRun::refuse);
    touch(base_ / "run");
    std::string text;

    const auto code = code_of([&] { folder.begin(world_, "task = mnist\n", {}); }, text);

    EXPECT_EQ(code, ExitCode::io);
    EXPECT_THAT(text, HasSubstr("--save-dir"));
}

}  // namespace
}  // namespace hetseq
