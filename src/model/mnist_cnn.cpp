#include "hetseq/model/mnist_cnn.hpp"

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/relu.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/model/dropout.hpp"

namespace hetseq {

namespace {

enum DropoutLayer : std::uint32_t { after_convolution, after_hidden };
enum Unit : std::size_t { convolution_unit, hidden_unit, output_unit, mnist_units };

struct Layer {
    at::Tensor weight, bias;
};

class MnistCnn final : public Model {
public:
    explicit MnistCnn(const MnistCnnOptions& options) : options_{options} {}

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<MetricSchema> metrics() const override { return {{"accuracy", 0}}; }

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        return run_units({0, mnist_units}, {}, batch, context).result;
    }

    std::vector<ChainUnit> chain() const override {
        return {{"convolutions", {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"}},
                {"hidden", {"fc1.weight", "fc1.bias"}},
                {"output", {"fc2.weight", "fc2.bias"}}};
    }

    Carried run_units(UnitRange units,
                      const Carried& carried,
                      const MicroBatch& batch,
                      const ForwardContext& context) override {
        HETSEQ_ASSERT(!units.empty() && units.end <= mnist_units);
        at::Tensor x = units.begin > 0 ? carried.tensors.front() : at::Tensor{};
        if (units.contains(convolution_unit))
            x = convolved(batch, context);
        if (units.contains(hidden_unit))
            x = hidden_states(x, batch, context);
        if (units.contains(output_unit))
            return {.tensors = {}, .result = result(log_probabilities(x), batch, context)};
        return {.tensors = {x}, .result = {}};
    }

    bool predicts() const override { return true; }
    std::vector<Prediction> predict(const MicroBatch& batch) override {
        const ForwardContext context{.mode = Mode::evaluate};
        const at::Tensor x = hidden_states(convolved(batch, context), batch, context);
        const at::Tensor probabilities = log_probabilities(x).exp().to(at::kFloat);
        return {{"probabilities", probabilities}, {"label", probabilities.argmax(1).to(at::kByte)}};
    }

private:
    static at::Tensor dropped(const at::Tensor& x,
                              double p,
                              DropoutLayer layer,
                              const MicroBatch& batch,
                              const ForwardContext& context) {
        const DropoutKey key{context.seed, context.update, layer};
        return counter_dropout(x, context.mode == Mode::train ? p : 0, key, batch.sample_ids);
    }

    /// (n, 9216)
    at::Tensor convolved(const MicroBatch& batch, const ForwardContext& context) const {
        const at::Tensor images = batch.tensors.at("images").to(conv1_.weight.dtype());
        // CPUs convolve fastest with channels last; GPUs do so only where tensor cores compute,
        // which fp32 does not use. Rectifying after pooling gives the same values from a quarter of
        // the elements.
        const auto filters = [](const at::Tensor& weight) {
            return weight.is_cpu() ? weight.clone(at::MemoryFormat::ChannelsLast) : weight;
        };
        at::Tensor x = at::conv2d(images, filters(conv1_.weight), conv1_.bias).relu_();
        x = at::max_pool2d(at::conv2d(x, filters(conv2_.weight), conv2_.bias), 2).relu_();
        x = x.contiguous().flatten(1);
        return dropped(x, options_.convolution_dropout, after_convolution, batch, context);
    }

    /// (n, 128) of x (n, 9216)
    at::Tensor hidden_states(const at::Tensor& x,
                             const MicroBatch& batch,
                             const ForwardContext& context) const {
        const at::Tensor active = at::relu(at::linear(x, fc1_.weight, fc1_.bias));
        return dropped(active, options_.hidden_dropout, after_hidden, batch, context);
    }

    /// (n, 10) of x (n, 128)
    at::Tensor log_probabilities(const at::Tensor& x) const {
        return at::log_softmax(at_least_fp32(at::linear(x, fc2_.weight, fc2_.bias)), 1);
    }

    static ForwardResult result(const at::Tensor& scores,
                                const MicroBatch& batch,
                                const ForwardContext& context) {
        const at::Tensor& labels = batch.tensors.at("labels");
        ForwardResult result;
        result.losses = {at::nll_loss(scores, labels, {}, at::Reduction::Sum)};
        if (context.mode == Mode::evaluate)
            result.metrics = {scores.detach().argmax(1).eq(labels).sum()};
        return result;
    }

    Layer layer(const std::string& name, at::IntArrayRef weight_shape) {
        const at::Tensor weight = register_parameter(name + ".weight", at::empty(weight_shape));
        return {weight, register_parameter(name + ".bias", at::empty({weight_shape[0]}))};
    }

    MnistCnnOptions options_;
    Layer conv1_ = layer("conv1", {32, 1, 3, 3});
    Layer conv2_ = layer("conv2", {64, 32, 3, 3});
    Layer fc1_ = layer("fc1", {128, 9216});
    Layer fc2_ = layer("fc2", {10, 128});
};

}  // namespace

std::shared_ptr<Model> make_mnist_cnn(const MnistCnnOptions& options) {
    return std::make_shared<MnistCnn>(options);
}

}  // namespace hetseq
