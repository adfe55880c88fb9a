#include <torch/torch.h>

#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

namespace {

/// An option of the model alone: --target-smoothing is known where the model is chosen.
const hetseq::Option<double>& label_smoothing() {
    static const auto option = hetseq::number_option(
        "target-smoothing", "0", "share of each label that goes to all classes alike", 0, 1);
    return option;
}

/// One linear layer from pixels to classes. Input as the batching "images" makes it:
/// "images" (n, 1, 28, 28) floating, "labels" (n) int64.
class SoftmaxRegression final : public hetseq::Model {
public:
    explicit SoftmaxRegression(double smoothing) : smoothing_{smoothing} {
        linear_ = register_module("linear", torch::nn::Linear(28 * 28, 10));
    }

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<hetseq::MetricSchema> metrics() const override { return {{"accuracy", 0}}; }

    hetseq::ForwardResult forward(const hetseq::MicroBatch& batch,
                                  const hetseq::ForwardContext& context) override {
        const at::Tensor labels = batch.tensors.at("labels");
        const at::Tensor images = batch.tensors.at("images").flatten(1).to(linear_->weight.dtype());
        const at::Tensor logits = linear_->forward(images);  // (n, 10)
        const bool evaluates = context.mode == hetseq::Mode::evaluate;
        hetseq::ForwardResult result;
        result.losses = {at::cross_entropy_loss(
            logits, labels, {}, at::Reduction::Sum, -100, evaluates ? 0 : smoothing_)};
        if (evaluates)
            result.metrics = {(logits.argmax(1) == labels).sum()};
        return result;
    }

private:
    double smoothing_;
    torch::nn::Linear linear_{nullptr};
};

}  // namespace

int main(int argc, char** argv) {
    hetseq::keep_freed_memory();
    hetseq::Parts parts = hetseq::builtin_parts();
    parts.models.add("softmax-regression",
                     [](const hetseq::PartOptions& options) {
                         return std::make_shared<SoftmaxRegression>(options.get(label_smoothing()));
                     },
                     {label_smoothing()});
    return hetseq::run_program(argc, argv, parts);
}
