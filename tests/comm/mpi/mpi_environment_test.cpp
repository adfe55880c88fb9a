#include "hetseq/comm/mpi/mpi_environment.hpp"

#include <mpi.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(MpiEnvironmentTest, ReportsTheThreadSupportGiven) {
    int provided = 0;
    MPI_Query_thread(&provided);

    const ThreadSupport support = test::environment().thread_support();

    EXPECT_EQ(support == ThreadSupport::multiple, provided == MPI_THREAD_MULTIPLE);
    EXPECT_THAT(to_string(support), testing::StartsWith("MPI_THREAD_"));
}

TEST(MpiEnvironmentTest, NamesTheLibraryInOneShortLine) {
    const std::string version = MpiEnvironment::library_version();

    EXPECT_THAT(version, testing::MatchesRegex("[A-Z][A-Za-z ]* v?[0-9][^,]*"));
}

TEST(MpiTryTest, AFailedCallIsACommErrorThatNamesIt) {
    const HostComm world = test::world();
    const int no_such_rank = world.size();

    try {
        MPI_TRY(MPI_Send(nullptr, 0, MPI_BYTE, no_such_rank, 0, mpi_handle(world)));
        FAIL() << "no error";
    } catch (const CommError& error) {
        EXPECT_THAT(error.what(), testing::StartsWith("MPI_Send failed (MPI_ERR_RANK"));
        EXPECT_EQ(error.code(), ExitCode::device);
    }
}

TEST(MpiTryTest, MemoryThatMpiCannotGetIsNoMatterOfTheNetwork) {
    try {
        MPI_TRY(MPI_ERR_NO_MEM);
        FAIL() << "no error";
    } catch (const CommError& error) {
        EXPECT_THAT(message_of(error), testing::HasSubstr("MPI_ERR_NO_MEM"));
        EXPECT_THAT(message_of(error), testing::EndsWith(more_memory_advice()));
    }
}

}  // namespace
}  // namespace hetseq
