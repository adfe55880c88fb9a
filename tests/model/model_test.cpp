#include "hetseq/model/model.hpp"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "model/mixed_model.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::MixedModel;

std::vector<std::string> stored_names(const Model& model) {
    std::vector<std::string> names;
    for (const NamedTensor& stored : model.stored_tensors())
        names.push_back(stored.name);
    return names;
}

TEST(ModelTest, FrozenParametersAndBuffersAreStoredOnce) {
    const MixedModel model;

    EXPECT_THAT(
        stored_names(model),
        testing::ElementsAre("trained", "frozen", "table.counts", "table.mask", "table.scales"));
}

TEST(ModelTest, AConversionKeepsTheTypesOfIntegersAndBooleans) {
    MixedModel model;
    const at::Tensor counts = model.counts().clone(), mask = model.mask().clone();

    static_cast<Model&>(model).to(at::kCPU, at::kDouble);

    EXPECT_EQ(model.trained.scalar_type(), at::kDouble);
    EXPECT_EQ(model.frozen.scalar_type(), at::kDouble);
    EXPECT_EQ(model.scales().scalar_type(), at::kDouble);
    EXPECT_TRUE(model.counts().equal(counts)) << model.counts();
    EXPECT_TRUE(model.mask().equal(mask)) << model.mask();
    EXPECT_FALSE(model.frozen.requires_grad());
    EXPECT_TRUE(model.trained.requires_grad());

    model.to(at::kHalf);

    EXPECT_EQ(model.trained.scalar_type(), at::kHalf);
    EXPECT_TRUE(model.counts().equal(counts));
}

TEST(ModelTest, WithoutAWordOfItsOwnAModelPredictsNothing) {
    MixedModel model;

    EXPECT_FALSE(model.predicts());
    EXPECT_TRUE(model.predict({}).empty());
    EXPECT_EQ(model.learning_rate_factor("trained"), 1);
    EXPECT_FALSE(model.initialises_itself());
}

}  // namespace
}  // namespace hetseq
