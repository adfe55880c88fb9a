#include "hetseq/train/agreement/update_agreement.hpp"

#include <array>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(UpdateAgreementTest, WeightsAreSummedOverRanks) {
    const HostComm world = test::world();
    UpdateAgreement agreement(world, 2);
    const std::array<double, 2> weights{1.0 + world.rank(), 10};

    agreement.post(weights, nullptr);
    agreement.wait();

    const int n = world.size();
    EXPECT_THAT(agreement.weights(), testing::ElementsAre(n * (n + 1) / 2, 10 * n));
}

TEST(UpdateAgreementTest, EachUpdateHasWeightsOfItsOwn) {
    const HostComm world = test::world();
    UpdateAgreement agreement(world, 1);

    for (const double weight : {3.0, 0.0, 5.0}) {
        agreement.post(std::array{weight}, nullptr);
        agreement.wait();
        EXPECT_THAT(agreement.weights(), testing::ElementsAre(weight * world.size()));
    }
}

TEST(UpdateAgreementTest, TimesAreToldByRank) {
    const HostComm world = test::world();
    UpdateAgreement agreement(world, 1);

    agreement.post(std::array{1.0},
                   nullptr,
                   {.compute_ms = 10.0 + world.rank(),
                    .update_ms = 20.0 + world.rank(),
                    .micro_batch = 30 + world.rank()});
    agreement.wait();

    for (int r = 0; r < world.size(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        EXPECT_EQ(agreement.compute_ms()[i], 10 + r);
        EXPECT_EQ(agreement.update_ms()[i], 20 + r);
        EXPECT_EQ(agreement.micro_batches()[i], 30 + r);
    }
}

TEST(UpdateAgreementTest, OneRanksFailureIsThrownOnAllWithItsTextAndRank) {
    const HostComm world = test::world();
    UpdateAgreement agreement(world, 2);
    const int failing = world.size() - 1;
    if (world.rank() == failing)
        agreement.post({}, std::make_exception_ptr(BadData("row 7 is bad")));
    else
        agreement.post(std::array{1.0, 1.0}, nullptr);

    std::string text;
    try {
        agreement.wait();
        ADD_FAILURE() << "did not throw";
    } catch (const AgreedError& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data);
        text = error.what();
    }

    EXPECT_THAT(text, StartsWith("row 7 is bad"));
    if (world.size() > 1) {
        EXPECT_THAT(text, HasSubstr("[rank " + std::to_string(failing) + " on "));
    }
    for (const std::string& other : world.all_gather(text))
        EXPECT_EQ(other, text);
}

// One rank's border lies a sample further, as rounding in floating point may place it.
TEST(UpdateAgreementTest, SlicesThatDoNotTileTheBatchAreAnErrorOfAllRanks) {
    const HostComm world = test::world();
    UpdateAgreement agreement(world, 1);
    const int odd = world.size() - 1;
    const GlobalBatch batch{.update = 4, .begin = 100, .end = 100 + 10 * world.size()};
    const auto post = [&](std::int64_t shift) {
        const std::int64_t begin = batch.begin + 10 * world.rank();
        const Slice own{begin + (world.rank() == odd ? shift : 0), begin + 10};
        agreement.post(std::array{1.0}, nullptr, {.batch = batch, .slice = own});
    };
    post(0);
    EXPECT_NO_THROW(agreement.wait());

    for (const std::int64_t shift : {-1, 1}) {
        post(shift);
        std::string text;
        try {
            agreement.wait();
            ADD_FAILURE() << "did not throw";
        } catch (const AgreedError& error) {
            EXPECT_EQ(error.code(), ExitCode::internal);
            text = error.what();
        }

        EXPECT_THAT(text, HasSubstr("the ranks cut batch 5 in unlike ways"));
        EXPECT_THAT(text, HasSubstr("rank " + std::to_string(odd) + " on "));
        EXPECT_THAT(text, HasSubstr("begins with sample " + std::to_string(10 * odd + shift)));
        for (const std::string& other : world.all_gather(text))
            EXPECT_EQ(other, text);
    }
}

TEST(UpdateAgreementTest, AFailureOfAllRanksAlikeNamesNoRank) {
    const HostComm world = test::world();
    UpdateAgreement agreement(world, 1);
    agreement.post({}, std::make_exception_ptr(IoError("disk is full")));

    try {
        agreement.wait();
        ADD_FAILURE() << "did not throw";
    } catch (const AgreedError& error) {
        EXPECT_EQ(error.code(), ExitCode::io);
        EXPECT_STREQ(error.what(), "disk is full");
    }
}

}  // namespace
}  // namespace hetseq
