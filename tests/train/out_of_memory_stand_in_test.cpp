// Memory of the device that runs out in each tensor of an update in turn, over the stand-ins.
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "stand_in/torch/tensor_memory.hpp"
#include "test_world.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {
namespace {

using stand_in::fail_tensor_after;
using stand_in::tensors_made;

class OutOfMemoryTest : public testing::Test {
protected:
    void SetUp() override {
        device_ = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(world_.rank()));
        current_.reset_device(device_);
        corpus_ = write_toy_corpus(world_, 53);
        const std::vector<std::int64_t> capacities(static_cast<std::size_t>(world_.size()), 3);
        run_ = {.data = corpus_,
                .capacities = capacities,
                .batch_size = 7 * world_.size(),
                .updates = 3,
                .dropout = 0.2,
                .bucket_bytes = 1,
                .device = device_};
        ToyRun on_one_cpu = run_;
        on_one_cpu.capacities = {run_.batch_size};
        on_one_cpu.device = at::kCPU;
        expected_ = train_toy(test::environment(), HostComm::serial(), on_one_cpu).parameters;
    }
    void TearDown() override {
        fail_tensor_after(-1);
        remove_toy_corpus(world_, corpus_);
    }

    // Calls `then` with how many micro-batches of update 2 have begun, on rank 0. An update that is
    // repeated calls it again.
    ToyRun run_with(std::function<void(int begun)> then) const {
        ToyRun run = run_;
        auto begun = std::make_shared<int>(0);
        run.spoil = [this, begun, then = std::move(then)](
                        const MicroBatch&, const ForwardContext& context, ForwardResult&) {
            if (world_.rank() == 0 && context.update == 1)
                then(++*begun);
        };
        return run;
    }
    void expect_same(const ToyRun& run, long failure) const {
        const at::Tensor parameters = train_toy(test::environment(), world_, run).parameters.cpu();
        EXPECT_LE((expected_ - parameters).abs().max().item<double>(), 1e-12)
            << "where tensor " << failure << " found no memory";
    }

    HostComm world_ = test::world();
    at::Device device_ = at::kCPU;
    c10::OptionalDeviceGuard current_;
    std::string corpus_;
    ToyRun run_;
    at::Tensor expected_;
};

// From its first micro-batch on, through the last one's backward, where buckets have been started.
// Some tensors: one rank alone tries them all, below.
TEST_F(OutOfMemoryTest, TensorsOfForwardAndBackwardMayFailOnOneOfTwoRanks) {
    if (world_.size() != 2)
        return;
    long first = 0;
    long last = 0;
    train_toy(test::environment(), world_, run_with([&](int begun) {
                  (begun == 1 ? first : last) = tensors_made();
              }));
    const long tries = std::stol(world_.broadcast(std::to_string(last - first), 0));
    ASSERT_GT(tries, 20);

    for (long failure = 0; failure < tries; failure += 7)
        expect_same(run_with([&](int begun) {
                        if (begun == 1)
                            fail_tensor_after(failure);
                    }),
                    failure);
    for (long failure = 0; failure < 20; failure += 5)
        expect_same(run_with([&](int begun) {
                        if (begun == 3)
                            fail_tensor_after(failure);
                    }),
                    failure);
}

// Whatever comes between one update's forward and the next one's: the sums, the norm, the status,
// the optimizer, the next batch's copies. A run goes on to the same end, or says what ended it.
TEST_F(OutOfMemoryTest, AnyTensorOfAnUpdateMayFail) {
    if (world_.size() > 1)
        return;  // the other ranks would wait for the one that ended
    long first = 0;
    ToyRun counting = run_;
    long made = 0;
    counting.spoil = [&](const MicroBatch&, const ForwardContext& context, ForwardResult&) {
        if (context.update == 1 && first == 0)
            first = tensors_made();
        if (context.update == 2 && made == 0)
            made = tensors_made() - first;
    };
    train_toy(test::environment(), world_, counting);
    ASSERT_GT(made, 50);

    std::string ended;
    for (long failure = 0; failure < made; ++failure) {
        try {
            expect_same(run_with([&](int begun) {
                            if (begun == 1)
                                fail_tensor_after(failure);
                        }),
                        failure);
        } catch (const Error& error) {
            ended += std::to_string(failure) + ": " + error.what() + "\n";
            EXPECT_NE(std::string{error.what()}.find("memory"), std::string::npos)
                << failure << ": " << error.what();
        }
    }
    EXPECT_EQ(ended, "");
}

}  // namespace
}  // namespace hetseq::test
