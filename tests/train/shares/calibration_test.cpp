#include "hetseq/train/shares/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/shares/peak_memory.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {
namespace {

constexpr std::int64_t mib = 1 << 20;

// The demands of a model that is calibrated.
struct Demands {
    std::int64_t most_samples = 1000;        // of a micro-batch, else it runs out of memory
    std::int64_t mb_per_sample = 0;          // that it fills
    std::int64_t memory_mb = 0;              // that it may fill
    std::chrono::milliseconds per_sample{};  // that it sleeps
    std::chrono::milliseconds per_pass{};    // beside
    // While its layer is recomputed, where that is allowed.
    std::optional<std::int64_t> most_recomputed_samples{};
    int times_as_long = 1;
};

// A model that draws from LibTorch's generator, as a user's may.
class DrawingModel final : public ToyModel {
public:
    explicit DrawingModel(const Demands& demands) : ToyModel(0.1), demands_{demands} {}

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        at::rand({3});
        const bool again = recomputed_layers() > 0;
        if (batch.samples > (again ? *demands_.most_recomputed_samples : demands_.most_samples))
            throw std::bad_alloc();
        passes_ = batch.samples > largest_ ? 1 : passes_ + (batch.samples == largest_ ? 1 : 0);
        largest_ = std::max(largest_, batch.samples);
        std::this_thread::sleep_for((again ? demands_.times_as_long : 1) *
                                    (demands_.per_pass + batch.samples * demands_.per_sample));
        const at::Tensor filled =
            at::ones({batch.samples * demands_.mb_per_sample * mib}, at::kByte);
        return ToyModel::forward(batch, context);
    }

    std::int64_t largest() const noexcept { return largest_; }
    int passes() const noexcept { return passes_; }

private:
    Demands demands_;
    std::int64_t largest_ = 0;  // micro-batch so far [samples]
    int passes_ = 0;            // of that one
};

class CalibrationTest : public testing::Test {
protected:
    CalibrationTest() : data_{write_toy_corpus(world_, 60)} {}
    ~CalibrationTest() override { remove_toy_corpus(world_, data_); }

    std::vector<std::int64_t> all(std::int64_t capacity) const {
        return std::vector<std::int64_t>(static_cast<std::size_t>(world_.size()), capacity);
    }

    // Calibrates with a fresh model.
    StepCost calibrate_toy(const std::vector<std::int64_t>& capacities,
                           const Demands& demands = {},
                           const std::optional<StepCost>& known = {}) {
        DataContext context(world_, environment().thread_support() == ThreadSupport::multiple);
        DrawingModel model(demands);
        initialise_parameters(model, 3);
        model.to(at::kDouble);
        FlatParameters parameters(model, [](const std::string&) { return true; });
        const at::Tensor before = parameters.values().clone();
        Corpus corpus(
            context, data_, toy_schema(), {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1});
        const ToyCollator collator;
        Loader loader(corpus, collator, {.seed = 4, .loss_terms = 2});
        const BatchPlan plan(corpus.samples(), 40);
        const at::Tensor generator = state_of_generator();
        const StepCost cost =
            calibrate(world_,
                      model,
                      parameters,
                      loader,
                      plan,
                      capacities,
                      known,
                      {.seconds = 0.3,
                       .memory_mb = demands.memory_mb,
                       .may_recompute = demands.most_recomputed_samples.has_value()});
        EXPECT_EQ(model.recomputed_layers(), cost.recomputed_layers);
        largest_ = model.largest();
        passes_ = model.passes();
        EXPECT_TRUE(at::equal(parameters.values(), before));
        EXPECT_TRUE(at::equal(state_of_generator(), generator));
        EXPECT_EQ(parameters.gradients().abs().max().item<double>(), 0);
        EXPECT_EQ(loader.outstanding(), 0U);
        return cost;
    }

    static at::Tensor state_of_generator() {
        return at::globalContext().defaultGenerator(at::kCPU).get_state();
    }

    HostComm world_ = test::world();
    std::string data_;
    std::int64_t largest_ = 0;  // micro-batch that was tried [samples]
    int passes_ = 0;            // of that one
};

TEST_F(CalibrationTest, MeasuresATimeThatGrowsAndTouchesNothing) {
    const StepCost cost = calibrate_toy(all(16));

    EXPECT_EQ(cost.micro_batch, 16);
    EXPECT_GT(cost.time_ms(1), 0);
    EXPECT_GE(cost.time_ms(64), cost.time_ms(16));
}

// One pass takes most of the seconds: the second would be the only one that is measured.
TEST_F(CalibrationTest, TheLargestSizeIsMeasuredThreeTimesOnASlowDevice) {
    calibrate_toy(all(4), {.per_sample = std::chrono::milliseconds(50)});

    EXPECT_GE(passes_, 1 + 3);  // the first warms up
}

TEST_F(CalibrationTest, ARankWithoutWorkAndOneThatKnowsItsCostTakePart) {
    std::vector<std::int64_t> capacities = all(4);
    capacities.back() = 0;

    const std::optional<StepCost> known =
        world_.rank() == 0 ? std::optional(StepCost{.unit_ms = 7, .micro_batch = 4}) : std::nullopt;

    const StepCost cost = calibrate_toy(capacities, {}, known);

    if (world_.rank() == 0 && capacities[0] > 0) {
        EXPECT_EQ(cost.unit_ms, 7);
    }
    if (world_.rank() == world_.size() - 1 && world_.size() > 1) {
        EXPECT_EQ(cost.micro_batch, 0);
    }
}

TEST_F(CalibrationTest, MemoryThatEndsBoundsTheMicroBatch) {
    const bool small = world_.rank() == 0;

    const StepCost cost = calibrate_toy(all(16), {.most_samples = small ? 9 : 1000});

    EXPECT_EQ(cost.micro_batch, small ? 8 : 16);
}

TEST_F(CalibrationTest, TooLittleMemoryForAnythingEndsAllRanks) {
    const bool small = world_.rank() == world_.size() - 1;

    EXPECT_THROW(calibrate_toy(all(8), {.most_samples = small ? 0 : 1000}), Error);
}

TEST_F(CalibrationTest, ALayerIsRecomputedWhereMemoryLacksAndLargerMicroBatchesAreFaster) {
    const StepCost cost = calibrate_toy(all(16),
                                        {.most_samples = 3,
                                         .per_pass = std::chrono::milliseconds(8),
                                         .most_recomputed_samples = 16});

    EXPECT_EQ(cost.recomputed_layers, 1);
    EXPECT_EQ(cost.micro_batch, 16);
}

TEST_F(CalibrationTest, NotWhereSmallerMicroBatchesAreFaster) {
    const StepCost cost = calibrate_toy(all(16),
                                        {.most_samples = 8,
                                         .per_sample = std::chrono::milliseconds(2),
                                         .most_recomputed_samples = 16,
                                         .times_as_long = 10});

    EXPECT_EQ(cost.recomputed_layers, 0);
    EXPECT_EQ(cost.micro_batch, 8);
}

TEST_F(CalibrationTest, NotWhereMemoryHoldsTheCapacity) {
    EXPECT_EQ(calibrate_toy(all(16), {.most_recomputed_samples = 16}).recomputed_layers, 0);
}

TEST_F(CalibrationTest, RecomputedWhereMemoryHoldsNothingOtherwise) {
    const StepCost cost = calibrate_toy(all(16), {.most_samples = 0, .most_recomputed_samples = 4});

    EXPECT_EQ(cost.recomputed_layers, 1);
    EXPECT_EQ(cost.micro_batch, 4);
}

// Room for about 12 samples: the kernel would kill a process that tried 16 or 32.
TEST_F(CalibrationTest, AHostsMemoryBoundsTheMicroBatchWithoutTrying) {
    if (!std::ofstream("/proc/self/clear_refs"))
        GTEST_SKIP() << "the kernel does not let peaks of memory be measured";
    calibrate_toy(all(8));  // threads and their memory are there then
    PeakMemory peak;
    peak.reset();
    const double limit_mb = (peak.mb() + 12 * 16) / 0.9;

    const StepCost cost = calibrate_toy(
        all(32), {.mb_per_sample = 16, .memory_mb = static_cast<std::int64_t>(limit_mb)});

    EXPECT_LE(largest_, 8);
    EXPECT_GE(cost.micro_batch, 8);
    EXPECT_LE(cost.micro_batch, 14);
}

}  // namespace
}  // namespace hetseq::test
