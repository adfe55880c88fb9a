#include "hetseq/session/run_identity.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

RunIdentity run() {
    return {.options = {{"batch-size", "64"}},
            .corpus = "images (28, 28)",
            .devices = {"V100", "P100"},
            .limits = {"4 cores", "2 cores"}};
}

TEST(RunIdentityTest, BatchesAreTheSameForTheSameDataSizeAndNumberOfRanks) {
    RunIdentity other = run();
    other.devices = {"A100", "A100"};
    EXPECT_TRUE(have_same_batches(run(), other));

    other.devices.push_back("A100");
    EXPECT_FALSE(have_same_batches(run(), other));
    other = run();
    other.corpus = "tokens (128)";
    EXPECT_FALSE(have_same_batches(run(), other));
    other = run();
    other.options["batch-size"] = "128";
    EXPECT_FALSE(have_same_batches(run(), other));
}

TEST(RunIdentityTest, RanksAreTheSameForTheSameDevicesAndLimits) {
    EXPECT_TRUE(have_same_ranks(run(), run()));

    RunIdentity other = run();
    other.devices[1] = "V100";
    EXPECT_FALSE(have_same_ranks(run(), other));
    other = run();
    other.limits[0] = "1 core";
    EXPECT_FALSE(have_same_ranks(run(), other));
}

}  // namespace
}  // namespace hetseq
