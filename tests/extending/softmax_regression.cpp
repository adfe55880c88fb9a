#include <sstream>

#include <torch/nn/modules/linear.h>

#include "hetseq/util/error.hpp"
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

    bool predicts() const override { return true; }
    std::vector<hetseq::Prediction> predict(const hetseq::MicroBatch& batch) override {
        const at::Tensor images = batch.tensors.at("images").flatten(1).to(linear_->weight.dtype());
        return {{"label", linear_->forward(images).argmax(1).to(at::kInt)}};  // (n)
    }

private:
    double smoothing_;
    torch::nn::Linear linear_{nullptr};
};

/// Lines of 784 pixels from 0 to 255, for `hetseq predict RUN < lines`; the answer is the class.
class PixelLines final : public hetseq::LineAnswering {
public:
    std::optional<hetseq::LineRow> row_of(const std::string& line) override {
        std::istringstream numbers(line);
        hetseq::LineRow row;
        for (int pixel = 0; numbers >> pixel;)
            row.ids.push_back(pixel);
        if (row.ids.empty() && numbers.eof())
            return std::nullopt;
        if (!numbers.eof() || row.ids.size() != 28 * 28)
            throw hetseq::BadData("an image is 784 numbers");
        row.size = 1;
        return row;
    }

    hetseq::TensorDict fields_of(std::span<const hetseq::LineRow> rows) const override {
        std::vector<at::Tensor> images;
        for (const hetseq::LineRow& row : rows)
            images.push_back(at::tensor(row.ids, at::kByte).view({28, 28}));
        return {{"images", at::stack(images)}};  // (n, 28, 28) uint8, as the corpus has them
    }

    std::vector<hetseq::LineAnswer> answers_of(
        std::span<const hetseq::LineRow> rows,
        const std::vector<hetseq::Prediction>& predictions) const override {
        std::vector<hetseq::LineAnswer> answers(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i)
            answers[i].labels = {predictions[0].values[static_cast<std::int64_t>(i)].item<int>()};
        return answers;
    }

    std::string text_of(const std::string&, const hetseq::LineAnswer& answer) const override {
        return "class " + std::to_string(answer.labels[0]);
    }

    std::string unit() const override { return "image"; }
    std::string note_on_cut() const override { return ""; }  // no line is cut
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
    parts.lines.add("softmax-regression",
                    [](const std::filesystem::path&, const hetseq::PartOptions&) {
                        return std::make_unique<PixelLines>();
                    });
    return hetseq::run_program(argc, argv, parts);
}
