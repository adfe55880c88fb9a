#include "hetseq/train/record/folder_lease.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

// The waiting process's clock, which nothing really waits for.
class FolderLeaseTest : public testing::Test {
protected:
    // `meanwhile` happens at each second that the process waits.
    LeaseSurroundings surroundings(const std::function<void(int)>& meanwhile = [](int) {}) {
        LeaseSurroundings surroundings;
        surroundings.now = [this] { return now_; };
        surroundings.sleep = [this, meanwhile](double seconds) {
            now_ += seconds;
            meanwhile(++waited_);
        };
        return surroundings;
    }
    LeaseHolder foreign(const std::string& token = "other") const {
        return {.token = token, .host = "node99", .boot = "b", .pid_namespace = "p", .pid = 5};
    }
    void write_foreign(std::int64_t beats, const std::string& token = "other") const {
        folder_.write("lease.json", lease_json({foreign(token), beats}));
    }
    std::string holder() const {
        const auto lease = parse_lease(folder_.read("lease.json"));
        return lease ? lease->holder.token : "nobody";
    }
    static std::string problem_of(const std::function<void()>& work) {
        try {
            work();
        } catch (const BadConfig& error) {
            return error.what();
        }
        return "";
    }

    test::TemporaryFolder folder_;
    double now_ = 0;
    int waited_ = 0;
};

TEST_F(FolderLeaseTest, IsThereWhileItsHolderIs) {
    {
        FolderLease lease(folder_.path(), surroundings());
        lease.acquire();
        EXPECT_EQ(holder(), lease.token());
        EXPECT_NO_THROW(lease.check());
    }
    EXPECT_EQ(folder_.size(), 0);
    EXPECT_EQ(waited_, 0);
}

TEST_F(FolderLeaseTest, BeatsInItsPlace) {
    LeaseSurroundings quick = surroundings();
    quick.times.beat_s = 0.01;
    FolderLease lease(folder_.path(), quick);
    lease.acquire();
    const auto beats = [&] {
        const auto seen = parse_lease(folder_.read("lease.json"));
        return seen ? seen->beats : 0;
    };
    while (beats() < 3)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(folder_.size(), 1);
}

// Killed while it held the folder; the next start succeeds it at once, with its own process alive.
TEST_F(FolderLeaseTest, AKilledProcessIsSucceededAtOnce) {
    const pid_t process = ::fork();
    if (process == 0) {
        FolderLease lease(folder_.path());
        lease.acquire();
        ::raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(process, &status, 0), process);
    ASSERT_EQ(parse_lease(folder_.read("lease.json"))->holder.pid, process);
    FolderLease lease(folder_.path(), surroundings());

    lease.acquire();

    EXPECT_EQ(holder(), lease.token());
    EXPECT_EQ(waited_, 0);
    EXPECT_EQ(folder_.size(), 1);
}

TEST_F(FolderLeaseTest, AProcessNumberThatIsUsedAgainIsAnotherProcess) {
    LeaseHolder reused = this_process();
    reused.token = "other";
    reused.process_start -= 1;
    folder_.write("lease.json", lease_json({reused, 4}));
    FolderLease lease(folder_.path(), surroundings());

    lease.acquire();

    EXPECT_EQ(waited_, 0);
}

TEST_F(FolderLeaseTest, AJobThatLivesKeepsTheFolder) {
    write_foreign(0);
    FolderLease lease(folder_.path(), surroundings([&](int second) { write_foreign(second / 5); }));

    const std::string problem = problem_of([&] { lease.acquire(); });

    EXPECT_THAT(problem, HasSubstr("process 5 on node99"));
    EXPECT_THAT(problem, HasSubstr("--save-dir"));
    EXPECT_EQ(holder(), "other");
    EXPECT_LE(waited_, 6);
}

TEST_F(FolderLeaseTest, AJobThatIsSilentForAMinuteLosesTheFolder) {
    write_foreign(7);
    FolderLease lease(folder_.path(), surroundings());

    lease.acquire();

    EXPECT_EQ(holder(), lease.token());
    EXPECT_EQ(waited_, 60);
}

TEST_F(FolderLeaseTest, AJobThatLostTheFolderIsToldSoAndLeavesTheLeaseAlone) {
    {
        FolderLease lease(folder_.path(), surroundings());
        lease.acquire();
        write_foreign(0);

        EXPECT_THAT(problem_of([&] { lease.check(); }), HasSubstr("process 5 on node99"));
        EXPECT_TRUE(lease.is_lost());
        EXPECT_FALSE(problem_of([&] { lease.check_known(); }).empty());
    }
    EXPECT_EQ(holder(), "other");
}

TEST_F(FolderLeaseTest, OneThatSomebodyRemovedIsMadeAgain) {
    FolderLease lease(folder_.path(), surroundings());
    lease.acquire();
    std::filesystem::remove(folder_ / "lease.json");

    lease.check();

    EXPECT_EQ(holder(), lease.token());
}

TEST_F(FolderLeaseTest, AFolderThatIsGoneIsNotMadeAgain) {
    std::filesystem::create_directory(folder_ / "run");
    FolderLease lease(folder_ / "run", surroundings());
    lease.acquire();
    std::filesystem::remove_all(folder_ / "run");

    EXPECT_NO_THROW(lease.check());

    EXPECT_EQ(folder_.size(), 0);
}

TEST_F(FolderLeaseTest, AForkedProcessDoesNotEndItsParentsLease) {
    FolderLease lease(folder_.path(), surroundings());
    lease.acquire();
    const pid_t process = ::fork();
    if (process == 0) {
        lease.~FolderLease();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(process, &status, 0), process);

    EXPECT_EQ(status, 0);
    EXPECT_EQ(holder(), lease.token());
}

TEST_F(FolderLeaseTest, AStopIsHeardWhileItWaits) {
    write_foreign(7);
    LeaseSurroundings asked = surroundings();
    asked.is_asked_to_stop = [this] { return waited_ == 3; };
    FolderLease lease(folder_.path(), asked);
    try {
        lease.acquire();
        FAIL() << "took it";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::stopped);
    }
    EXPECT_EQ(holder(), "other");
}

}  // namespace
}  // namespace hetseq
