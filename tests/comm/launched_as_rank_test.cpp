#include <cstdlib>

#include <gtest/gtest.h>

#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {
namespace {

// Each test starts without the launchers' variables.
class LaunchedAsRankTest : public testing::Test {
protected:
    LaunchedAsRankTest() {
        for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"})
            unsetenv(name);
    }
};

TEST_F(LaunchedAsRankTest, AProcessOfItsOwnIsNoRank) {
    EXPECT_FALSE(MpiEnvironment::launched_as_rank());
}

TEST_F(LaunchedAsRankTest, MpirunsVariableMakesARank) {
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);

    EXPECT_TRUE(MpiEnvironment::launched_as_rank());
}

TEST_F(LaunchedAsRankTest, PmixOfSrunOrOpenMpi5MakesARank) {
    setenv("PMIX_RANK", "0", 1);

    EXPECT_TRUE(MpiEnvironment::launched_as_rank());
}

TEST_F(LaunchedAsRankTest, SeveralTasksOfSrunAreRanksAndOneIsNot) {
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    EXPECT_FALSE(MpiEnvironment::launched_as_rank());

    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    EXPECT_TRUE(MpiEnvironment::launched_as_rank());
}

TEST(LibraryVersionTest, NeedsNoMpiInit) {
    EXPECT_NE(MpiEnvironment::library_version().find("MPI"), std::string::npos);
}

}  // namespace
}  // namespace hetseq
