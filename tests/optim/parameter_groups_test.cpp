#include "optim/parameter_groups.hpp"

#include <gtest/gtest.h>

#include "optim/toy_module.hpp"
#include <gmock/gmock.h>

namespace hetseq::detail {
namespace {

using test::matrices_decay;
using test::ToyModule;

// conditional (decays) | unused | second (decays) | bias | first (decays)
class ParameterGroupsTest : public testing::Test {
protected:
    static std::int64_t elements(const ParameterGroup& group) {
        std::int64_t sum = 0;
        for (const Stretch& stretch : group.stretches)
            sum += stretch.numel;
        return sum;
    }

    ToyModule module_;
    FlatParameters flat_{module_, matrices_decay};
};

TEST_F(ParameterGroupsTest, WithoutWeightDecayAllAreOneStretch) {
    const std::vector<ParameterGroup> all = parameter_groups(flat_, 0);

    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].weight_decay, 0);
    ASSERT_EQ(all[0].stretches.size(), 1u);
    EXPECT_EQ(all[0].stretches[0].offset, 0);
    EXPECT_EQ(all[0].stretches[0].numel, flat_.values().numel());
}

TEST_F(ParameterGroupsTest, WithWeightDecayThereAreTwoThatShareTheElements) {
    const std::vector<ParameterGroup> all = parameter_groups(flat_, 0.1);

    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].weight_decay, 0.1);
    EXPECT_EQ(all[0].stretches.size(), 3u);
    EXPECT_EQ(all[1].weight_decay, 0);
    EXPECT_EQ(all[1].stretches.size(), 2u);
    EXPECT_EQ(elements(all[0]) + elements(all[1]), flat_.values().numel());
    EXPECT_EQ(all[1].of(flat_.values())[0].const_data_ptr(), module_.unused.const_data_ptr());
}

TEST_F(ParameterGroupsTest, FactorsOfTheLearningRateStayApart) {
    ToyModule module;
    const FlatParameters flat(
        module, matrices_decay, [](const std::string& name) { return name == "second" ? 0.5 : 1; });

    const std::vector<ParameterGroup> all = parameter_groups(flat, 0);

    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].learning_rate_factor, 1);
    EXPECT_EQ(all[0].stretches.size(), 2u);
    EXPECT_EQ(all[1].learning_rate_factor, 0.5);
    ASSERT_EQ(all[1].stretches.size(), 1u);
    EXPECT_EQ(all[1].stretches[0].of(flat.values()).const_data_ptr(),
              module.second.const_data_ptr());
}

}  // namespace
}  // namespace hetseq::detail
