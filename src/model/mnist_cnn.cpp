#include "hetseq/model/mnist_cnn.hpp"

#include <ATen/ATen.h>

#include "hetseq/model/autocast.hpp"
#include "hetseq/model/dropout.hpp"

namespace hetseq {

namespace {

enum DropoutLayer : std::uint32_t { after_convolution, after_hidden };

struct Layer {
    at::Tensor weight, bias;
};

class MnistCnn final : public Model {
public:
    explicit MnistCnn(const MnistCnnOptions& options) : options_{options} {}

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<MetricSchema> metrics() const override { return {{"accuracy", 0}}; }

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        const at::Tensor scores = log_probabilities(batch, context);
        const at::Tensor& labels = batch.tensors.at("labels");
        ForwardResult result;
        result.losses = {at::nll_loss(scores, labels, {}, at::Reduction::Sum)};
        if (context.mode == Mode::evaluate)
            result.metrics = {scores.detach().argmax(1).eq(labels).sum()};
        return result;
    }

    bool predicts() const override { return true; }
    std::vector<Prediction> predict(const MicroBatch& batch) override {
        const at::Tensor probabilities =
            log_probabilities(batch, {.mode = Mode::evaluate}).exp().to(at::kFloat);
        return {{"probabilities", probabilities}, {"label", probabilities.argmax(1).to(at::kByte)}};
    }

private:
    /// (n, 10)
    at::Tensor log_probabilities(const MicroBatch& batch, const ForwardContext& context) const {
        const auto dropout = [&](const at::Tensor& x, double p, DropoutLayer layer) {
            const DropoutKey key{context.seed, context.update, layer};
            return counter_dropout(x, context.mode == Mode::train ? p : 0, key, batch.sample_ids);
        };
        const at::Tensor images = batch.tensors.at("images").to(conv1_.weight.dtype());
        // CPUs convolve fastest with channels last; GPUs do so only where tensor cores compute,
        // which fp32 does not use. Rectifying after pooling gives the same values from a quarter of
        // the elements.
        const auto filters = [](const at::Tensor& weight) {
            return weight.is_cpu() ? weight.clone(at::MemoryFormat::ChannelsLast) : weight;
        };
        at::Tensor x = at::conv2d(images, filters(conv1_.weight), conv1_.bias).relu_();
        x = at::max_pool2d(at::conv2d(x, filters(conv2_.weight), conv2_.bias), 2).relu_();
        x = x.contiguous().flatten(1);  // (n, 9216)
        x = dropout(x, options_.convolution_dropout, after_convolution);
        x = at::relu(at::linear(x, fc1_.weight, fc1_.bias));  // (n, 128)
        x = dropout(x, options_.hidden_dropout, after_hidden);
        return at::log_softmax(at_least_fp32(at::linear(x, fc2_.weight, fc2_.bias)), 1);
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
