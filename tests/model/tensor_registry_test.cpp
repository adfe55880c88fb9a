#include "hetseq/model/tensor_registry.hpp"

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
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
    EXPECT_FALSE(registry.find_parameter("linear.bias").requires_grad());
    EXPECT_FALSE(registry.find_parameter("bias").defined());
    EXPECT_FALSE(registry.named_parameters().contains("linear"));
}

TEST(TensorRegistryTest, AModuleMayGetItsTensorsLater) {
    TensorRegistry registry;
    torch::nn::Sequential layers = registry.register_module("layers", torch::nn::Sequential());
    layers->push_back(torch::nn::Linear(3, 4));
    EXPECT_THAT(names(registry.named_parameters()),
                ElementsAre("layers.0.weight", "layers.0.bias"));
    layers->push_back(torch::nn::BatchNorm1d(4));
    EXPECT_THROW(registry.check_no_batch_statistics(), BadConfig);
}

TEST(TensorRegistryTest, ARegistryMayHoldAnother) {
    const auto inner = std::make_shared<TensorRegistry>();
    TensorRegistry outer;
    outer.register_module("inner", inner);
    inner->register_parameter("w", at::zeros({1}), /*requires_grad=*/false);
    inner->register_buffer("b", at::zeros({1}));
    EXPECT_THAT(names(outer.named_parameters()), ElementsAre("inner.w"));
    EXPECT_THAT(names(outer.named_buffers()), ElementsAre("inner.b"));
    EXPECT_FALSE(outer.find_parameter("inner.w").requires_grad());
}

TEST(TensorRegistryTest, ANameThatIsGivenTwiceIsNamed) {
    TensorRegistry registry;
    registry.register_parameter("head.w", at::zeros({1}));
    registry.register_buffer("head.w", at::zeros({1}));
    EXPECT_THAT([&] { registry.named_parameters(); },
                testing::ThrowsMessage<BadConfig>(testing::HasSubstr("'head.w' twice")));
}

template <class Module>
void expect_refused(const Module& module, const std::string& name) {
    TensorRegistry registry;
    registry.register_module("body", module);
    EXPECT_THAT([&] { registry.check_no_batch_statistics(); },
                testing::ThrowsMessage<BadConfig>(testing::HasSubstr("'" + name + "'")));
}

TEST(TensorRegistryTest, BatchNormalisationIsRefusedByName) {
    expect_refused(torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4)),
                   "body.1");
    expect_refused(
        torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(4).track_running_stats(false)),
        "body");
    const auto inner = std::make_shared<TensorRegistry>();
    inner->register_module(
        "norm",
        torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).track_running_stats(false)));
    expect_refused(inner, "body.norm");
    TensorRegistry by_hand;
    by_hand.register_buffer("norm.running_mean", at::zeros({4}));
    EXPECT_THROW(by_hand.check_no_batch_statistics(), BadConfig);
}

TEST(TensorRegistryTest, InstanceNormalisationMayNotTrackBatches) {
    expect_refused(torch::nn::Sequential(torch::nn::InstanceNorm2d(
                       torch::nn::InstanceNorm2dOptions(4).track_running_stats(true))),
                   "body.0");
}

TEST(TensorRegistryTest, LayerNormalisationIsAccepted) {
    TensorRegistry registry;
    registry.register_module(
        "body",
        torch::nn::Sequential(torch::nn::Linear(3, 4),
                              torch::nn::LayerNorm(torch::nn::LayerNormOptions({4}))));
    EXPECT_NO_THROW(registry.check_no_batch_statistics());
}

}  // namespace
}  // namespace hetseq
