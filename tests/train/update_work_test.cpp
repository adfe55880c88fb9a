// What an update asks of a device, counted under the stand-in of CUDA, against the numbers in
// tests/stand_in/update_work.txt: a change that launches or waits more must change them on purpose.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gpu.hpp"
#include "model/image_batch.hpp"
#include "stand_in/torch/operators.hpp"
#include "train/normalised_loss.hpp"

#include "hetseq/model/bert.hpp"
#include "hetseq/model/mnist_cnn.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/update_status.hpp"

namespace hetseq {
namespace {

MicroBatch on_device(MicroBatch batch) {
    for (auto& [name, tensor] : batch.tensors)
        tensor = tensor.to(test::gpu(), tensor.is_floating_point() ? at::kFloat : at::kLong);
    batch.sample_ids = batch.sample_ids.to(test::gpu());
    return batch;
}

MicroBatch sentences() {
    constexpr std::int64_t n = 4, length = 16;
    MicroBatch batch;
    batch.tensors = {{"input_ids", at::randint(30000, {n, length}, at::kLong)},
                     {"segment_ids", at::randint(2, {n, length}, at::kLong)},
                     {"attention_mask", at::ones({n, length}, at::kLong)},
                     {"masked_positions", at::arange(n, at::kLong) * length + 3},
                     {"masked_labels", at::randint(30000, {n}, at::kLong)},
                     {"next_sentence_labels", at::randint(2, {n}, at::kLong)}};
    batch.sample_ids = at::arange(n, at::kLong);
    batch.samples = batch.units = n;
    return batch;
}

// As the trainer makes one on a single rank.
void update(Model& model,
            FlatParameters& parameters,
            Optimizer& optimizer,
            UpdateStatus& status,
            const MicroBatch& batch) {
    const std::vector<double> weights(model.loss_terms().size(), 4);
    parameters.zero_gradients();
    status.zero();
    normalised_loss(model.forward(batch, {Mode::train, 3, 11}), weights, status).backward();
    status.check_losses();
    ASSERT_EQ(status.read().verdict, Verdict::apply);
    ASSERT_GT(gradient_norm(parameters.gradients()).item<double>(), 0);
    optimizer.step(parameters, 1e-3);
}

std::string work_of_an_update(const std::string& name, Model& model, const MicroBatch& batch) {
    model.to(test::gpu(), at::kFloat);
    FlatParameters parameters(model, [](const std::string&) { return true; });
    const auto optimizer = make_adam(parameters, {});
    UpdateStatus status(model.loss_terms().size(), test::gpu());
    update(model, parameters, *optimizer, status, batch);  // warms up

    stand_in::reset_work();
    update(model, parameters, *optimizer, status, batch);
    const stand_in::DeviceWork work = stand_in::device_work();
    return name + " operators " + std::to_string(work.operators) + " synchronisations " +
           std::to_string(work.synchronisations) + " (" + work.synchronised_by + ")";
}

std::vector<std::string> written_down() {
    std::ifstream file("tests/stand_in/update_work.txt");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

TEST(UpdateWorkTest, IsWhatIsWrittenDown) {
    const std::vector<std::string> expected = written_down();
    ASSERT_EQ(expected.size(), 2U);

    EXPECT_EQ(work_of_an_update("mnist", *make_mnist_cnn(), on_device(test::image_batch(4))),
              expected[0]);
    EXPECT_EQ(
        work_of_an_update("bert-tiny", *make_bert(bert_config("tiny")), on_device(sentences())),
        expected[1]);
}

}  // namespace
}  // namespace hetseq
