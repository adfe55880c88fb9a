#include "hetseq/app/program_agreement.hpp"

#include <gtest/gtest.h>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "hetseq/version.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ProgramAgreementTest, OneProgramIsGood) {
    const HostComm world = test::world();
    EXPECT_NO_THROW(agree_on_program(world, program_text()));
    EXPECT_THAT(program_text(),
                AllOf(HasSubstr(version::number),
                      HasSubstr(version::revision),
                      HasSubstr(std::string("LibTorch ") + version::libtorch)));
}

TEST(ProgramAgreementTest, AnotherProgramIsNamedWithItsRank) {
    const HostComm world = test::world();
    const int last = world.size() - 1;
    std::string text;
    try {
        agree_on_program(world,
                         world.rank() == last && last > 0 ? "hetseq 0.0.9 (old)" : program_text());
    } catch (const AgreedError& error) {
        EXPECT_EQ(error.code(), ExitCode::config);
        text = error.what();
    }

    if (last == 0) {
        EXPECT_EQ(text, "");
        return;
    }
    EXPECT_THAT(
        text,
        StartsWith("the program differs over ranks (here it is hetseq 0.0.9 (old), on rank 0 " +
                   program_text() + "): start one version on all hosts"));
    EXPECT_THAT(text, HasSubstr("[rank " + std::to_string(last) + " on "));
}

}  // namespace
}  // namespace hetseq
