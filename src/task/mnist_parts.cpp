#include <ATen/core/Tensor.h>

#include "hetseq/model/mnist_cnn.hpp"
#include "hetseq/task/parts.hpp"

#include "builtin_parts.hpp"

namespace hetseq {

namespace {

// The mean and the standard deviation of MNIST's training pixels; PyTorch's example normalises with
// them.
constexpr double pixel_mean = 0.1307;
constexpr double pixel_deviation = 0.3081;

CorpusSchema image_schema(const PartOptions&) {
    return {
        .kind = "images",
        .fields = {{.name = "images", .rank = 3, .type = ElementType::uint8, .row_shape = {28, 28}},
                   {.name = "labels",
                    .rank = 1,
                    .type = ElementType::uint8,
                    .row_shape = {},
                    .minimum = 0,
                    .maximum = 9,
                    .meaning = "classes 0 to 9",
                    .is_target = true}}};
}

/// Makes normalised "images" (n, 1, 28, 28) fp32 from pixels (n, 28, 28) uint8, and "labels" (n)
/// int64 where there are labels.
class ImageCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        batch.tensors["images"] = rows.at("images")
                                      .unsqueeze(1)
                                      .to(at::kFloat)
                                      .mul_(1 / (255 * pixel_deviation))
                                      .sub_(pixel_mean / pixel_deviation);
        if (rows.count("labels") != 0)
            batch.tensors["labels"] = rows.at("labels").to(at::kLong);
        batch.weights = {static_cast<double>(sample_ids.numel())};
        return batch;
    }
};

std::shared_ptr<Model> make_model(const PartOptions& options) {
    MnistCnnOptions model;
    if (options.dropout)
        model.convolution_dropout = model.hidden_dropout = *options.dropout;
    return make_mnist_cnn(model);
}

}  // namespace

void add_mnist_parts(Parts& parts) {
    parts.models.add("mnist-cnn", make_model);
    parts.datasets.add("images", image_schema);
    parts.batchings.add("images",
                        [](const PartOptions&) { return std::make_unique<ImageCollator>(); });
    parts.tasks.add("mnist",
                    {.help = "28x28 images in ten classes by a small convolutional network",
                     .model = "mnist-cnn",
                     .dataset = "images",
                     .batching = "images",
                     .defaults = {{"optimizer", "adadelta"},
                                  {"lr", "1"},
                                  {"lr-scheduler", "step"},
                                  {"lr-shrink", "0.7"},
                                  {"max-sentences", "64"}}});
}

}  // namespace hetseq
