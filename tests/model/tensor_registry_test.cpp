#include "hetseq/model/tensor_registry.hpp"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

template <class Items>
std::vector<std::string> names(const Items& items) {
    std::vector<std::string> names;
    for (const NamedTensor& item : items)
        names.push_back(item.name);
    return names;
}

TEST(TensorRegistryTest, TensorsLieInTheOrderOfTorchsTree) {
    TensorRegistry registry;
    struct Leaf : torch::nn::Module {
        explicit Leaf(const std::vector<std::string>& own) {
            for (const std::string& name : own)
                register_parameter(name, at::zeros({1}));
        }
    };
    const auto root = std::make_shared<Leaf>(std::vector<std::string>{});
    const auto b = root->register_module("b", std::make_shared<Leaf>(std::vector<std::string>{}));
    b->register_module("inner", std::make_shared<Leaf>(std::vector<std::string>{"w"}));
    b->register_parameter("z", at::zeros({1}));
    root->register_module("a", std::make_shared<Leaf>(std::vector<std::string>{"w"}));
    root->register_parameter("last", at::zeros({1}));
    root->register_buffer("table", at::zeros({1}));
    for (const char* const name : {"b.inner.w", "b.z", "a.w", "last"})
        registry.register_parameter(name, at::zeros({1}));
    registry.register_buffer("table", at::zeros({1}));

    std::vector<std::string> torchs;
    for (const auto& item : root->named_parameters())
        torchs.push_back(item.key());
    EXPECT_EQ(names(registry.named_parameters()), torchs);
    EXPECT_THAT(torchs, ElementsAre("last", "b.z", "b.inner.w", "a.w"));
    EXPECT_THAT(names(registry.named_buffers()), ElementsAre("table"));
}

TEST(TensorRegistryTest, AModulesTensorsAreTheRegistrys) {
    TensorRegistry registry;
    const torch::nn::Linear linear = registry.register_module("linear", torch::nn::Linear(3, 4));
    linear->bias.set_requires_grad(false);
    EXPECT_THAT(names(registry.named_parameters()), ElementsAre("linear.weight", "linear.bias"));
    EXPECT_TRUE(registry.named_parameters()["linear.weight"].is_same(linear->weight));
    EXPECT_FALSE(registry.find_parameter("linear.bias")->requires_grad());
    EXPECT_EQ(registry.find_parameter("bias"), nullptr);
    EXPECT_FALSE(registry.named_parameters().contains("linear"));
}

TEST(TensorRegistryTest, BatchNormalisationIsRefusedByName) {
    TensorRegistry registry;
    try {
        registry.register_module(
            "body", torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4)));
        FAIL() << "accepted";
    } catch (const BadConfig& error) {
        EXPECT_NE(std::string(error.what()).find("body.1"), std::string::npos) << error.what();
    }
    EXPECT_THROW(
        registry.register_module(
            "norm",
            torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(4).track_running_stats(false))),
        BadConfig);
}

TEST(TensorRegistryTest, InstanceNormalisationMayNotTrackBatches) {
    TensorRegistry registry;
    EXPECT_THROW(registry.register_module(
                     "body",
                     torch::nn::Sequential(torch::nn::InstanceNorm2d(
                         torch::nn::InstanceNorm2dOptions(4).track_running_stats(true)))),
                 BadConfig);
}

TEST(TensorRegistryTest, LayerNormalisationIsAccepted) {
    TensorRegistry registry;
    EXPECT_NO_THROW(registry.register_module(
        "body",
        torch::nn::Sequential(torch::nn::Linear(3, 4),
                              torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})))));
}

}  // namespace
}  // namespace hetseq
