#include "hetseq/comm/host/mpi_leftovers.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

namespace fs = std::filesystem;

constexpr const char* no_process = "99999999";  // above the largest that Linux gives

class MpiLeftoversTest : public testing::Test {
protected:
    MpiLeftoversTest() {
        places_.host = "host";
        places_.segments = folder_ / "shm";
        places_.sessions = folder_ / "ompi.host.0";
        places_.processes = folder_ / "proc";
        places_.are_all_processes_seen = true;
        fs::create_directories(places_.processes / "self");
        fs::create_directory(places_.segments);
        fs::create_directory(places_.sessions);
    }

    static fs::path aged(const fs::path& path) {
        fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
        return path;
    }
    fs::path segment(const std::string& name) const {
        folder_.write("shm/" + name, std::string(5000, 'x'));
        return places_.segments / name;
    }
    fs::path session(const std::string& name) const {
        fs::create_directories(places_.sessions / name);
        return places_.sessions / name;
    }

    const test::TemporaryFolder folder_;
    MpiPlaces places_;
};

TEST_F(MpiLeftoversTest, OldSegmentsThatNobodyMapsGo) {
    const fs::path left = aged(segment("vader_segment.host.0.1a.0"));
    const fs::path newer = aged(segment("sm_segment.host.0.1b.0"));
    const fs::path young = segment("vader_segment.host.0.1c.0");
    const fs::path other = aged(segment("somebody's"));
    const fs::path of_another_host = aged(segment("vader_segment.host2.0.1a.0"));

    const MpiLeftovers removed = remove_mpi_leftovers(places_);

    EXPECT_EQ(removed.segments, 2U);
    EXPECT_EQ(removed.bytes, 10000U);
    EXPECT_FALSE(fs::exists(left) || fs::exists(newer));
    EXPECT_TRUE(fs::exists(young) && fs::exists(other) && fs::exists(of_another_host));
}

TEST_F(MpiLeftoversTest, ASegmentThatALivingProcessMapsStays) {
    const fs::path used = aged(segment("vader_segment.host.0.1a.0"));
    fs::create_directory(places_.processes / "77");
    folder_.write("proc/77/maps",
                  "7f0e4a000000-7f0e4a400000 rw-s 00000000 00:1a 5 " + used.string() + "\n");

    EXPECT_EQ(remove_mpi_leftovers(places_).segments, 0U);
    EXPECT_TRUE(fs::exists(used));

    fs::remove_all(places_.processes / "77");
    EXPECT_EQ(remove_mpi_leftovers(places_).segments, 1U);
}

TEST_F(MpiLeftoversTest, SessionsOfDeadProcessesGo) {
    const fs::path dead = session(std::string("pid.") + no_process);
    folder_.write("ompi.host.0/pid." + std::string(no_process) + "/contact.txt", "x");
    aged(dead);
    fs::create_directory(places_.processes / "77");
    const fs::path alive = aged(session("pid.77"));
    const fs::path young = session(std::string("pid.9") + no_process);
    const fs::path empty = aged(session("jf.1"));
    session("jf.2/1");
    const fs::path full = aged(session("jf.2"));
    const fs::path strange = aged(session("pid.x"));

    EXPECT_EQ(remove_mpi_leftovers(places_).sessions, 2U);

    EXPECT_FALSE(fs::exists(dead) || fs::exists(empty));
    for (const fs::path& stays : {alive, young, full, strange})
        EXPECT_TRUE(fs::exists(stays)) << stays;
}

TEST_F(MpiLeftoversTest, ASessionOfAProcessInAContainerStays) {
    const fs::path inside = aged(session("pid.12")), dead = aged(session("pid.4711"));
    fs::create_directory(places_.processes / "4321");
    folder_.write("proc/4321/status",
                  "Name:\tmpirun\nPid:\t4321\nNSpid:\t4321\t12\nNSpgid:\t4711\n");

    EXPECT_EQ(remove_mpi_leftovers(places_).sessions, 1U);
    EXPECT_TRUE(fs::exists(inside));
    EXPECT_FALSE(fs::exists(dead));
}

TEST_F(MpiLeftoversTest, InAContainerAllSessionsStay) {
    places_.are_all_processes_seen = false;
    const fs::path outside = aged(session(std::string("pid.") + no_process));
    const fs::path empty = aged(session("jf.1"));
    EXPECT_EQ(remove_mpi_leftovers(places_).sessions, 0U);
    EXPECT_TRUE(fs::exists(outside) && fs::exists(empty));
}

TEST_F(MpiLeftoversTest, FoldersThatAreNotThereAreNoFailure) {
    places_.segments = folder_ / "none";
    places_.sessions = folder_ / "none";
    EXPECT_EQ(remove_mpi_leftovers(places_).sessions, 0U);
}

TEST_F(MpiLeftoversTest, WhereProcessesAreNotKnownAllStays) {
    places_.processes = folder_ / "none";
    const fs::path left = aged(segment("vader_segment.host.0.1a.0"));
    const fs::path dead = aged(session(std::string("pid.") + no_process));
    EXPECT_EQ(remove_mpi_leftovers(places_).segments, 0U);
    EXPECT_TRUE(fs::exists(left) && fs::exists(dead));
}

}  // namespace
}  // namespace hetseq
