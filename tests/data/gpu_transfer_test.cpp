// The way of micro-batches to a GPU, through pinned memory and a stream of its own.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "hetseq/data/loading/device_transfer.hpp"

#include "gpu.hpp"

namespace hetseq {
namespace {

std::vector<MicroBatch> batches_from(std::int64_t first) {
    std::vector<MicroBatch> batches;
    for (std::int64_t n : {1, 300, 7}) {
        MicroBatch batch;
        batch.tensors = {{"images", at::arange(first, first + n * 784, at::kFloat).view({n, 784})},
                         {"labels", at::arange(first, first + n, at::kLong)}};
        batch.sample_ids = at::arange(first + 5, first + 5 + n, at::kLong);
        batch.weights = {static_cast<double>(n)};
        batch.samples = batch.units = n;
        batches.push_back(batch);
    }
    return batches;
}

void expect_equal(const std::vector<MicroBatch>& arrived, const std::vector<MicroBatch>& sent) {
    ASSERT_EQ(arrived.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
        for (const auto& [name, tensor] : sent[i].tensors) {
            EXPECT_TRUE(arrived[i].tensors.at(name).device() == test::gpu()) << name;
            EXPECT_TRUE(arrived[i].tensors.at(name).cpu().equal(tensor)) << name;
        }
        EXPECT_TRUE(arrived[i].sample_ids.device() == test::gpu());
        EXPECT_TRUE(arrived[i].sample_ids.cpu().equal(sent[i].sample_ids));
        EXPECT_EQ(arrived[i].weights, sent[i].weights);
        EXPECT_EQ(arrived[i].samples, sent[i].samples);
    }
}

TEST(GpuTransferTest, BringsTheSameTensors) {
    HETSEQ_NEEDS_GPU();
    const auto transfer = make_device_transfer(test::gpu());
    std::vector<MicroBatch> batches = batches_from(0);

    const auto arrival = transfer->send(batches);
    ASSERT_NE(arrival, nullptr);
    arrival->wait(batches);

    expect_equal(batches, batches_from(0));
}

// Many are on their way at once, and memory is taken and given back between them.
TEST(GpuTransferTest, EachOfManyBringsItsOwn) {
    HETSEQ_NEEDS_GPU();
    const auto transfer = make_device_transfer(test::gpu());
    for (std::int64_t first = 0; first < 20; first += 2) {
        std::vector<MicroBatch> batches = batches_from(first), next = batches_from(first + 1);

        const auto arrival = transfer->send(batches), next_arrival = transfer->send(next);
        arrival->wait(batches);
        next_arrival->wait(next);

        expect_equal(batches, batches_from(first));
        expect_equal(next, batches_from(first + 1));
    }
}

}  // namespace
}  // namespace hetseq
