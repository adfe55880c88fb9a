#include "hetseq/train/calibration.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi_environment.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"

#include "hetseq/data/batch_plan.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/status_slots.hpp"

namespace hetseq::test {
namespace {

// A model that draws from LibTorch's generator, as a user's may, and may refuse to compute.
class DrawingModel final : public ToyModel {
public:
    explicit DrawingModel(std::int64_t most_samples) : ToyModel(0.1), most_samples_{most_samples} {}

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        at::rand({3});
        if (batch.samples > most_samples_)
            throw std::bad_alloc();
        return ToyModel::forward(batch, context);
    }

private:
    std::int64_t most_samples_;
};

class CalibrationTest : public testing::Test {
protected:
    CalibrationTest() : data_{write_toy_corpus(world_, 60)} {}
    ~CalibrationTest() override { remove_toy_corpus(world_, data_); }

    std::vector<std::int64_t> all(std::int64_t capacity) const {
        return std::vector<std::int64_t>(static_cast<std::size_t>(world_.size()), capacity);
    }

    // Calibrates with a fresh model that holds micro-batches of at most `most_samples` here.
    StepCost calibrate_toy(const std::vector<std::int64_t>& capacities,
                           std::int64_t most_samples = 1000,
                           const std::optional<StepCost>& known = {}) {
        DataContext context(world_, environment().thread_support() == ThreadSupport::multiple);
        DrawingModel model(most_samples);
        initialise_parameters(model, 3);
        model.to(at::kDouble);
        FlatParameters parameters(
            model, [](const std::string&) { return true; }, status_slot::count(2));
        const at::Tensor before = parameters.values().clone();
        Corpus corpus(
            context, data_, toy_schema(), {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1});
        const ToyCollator collator;
        Loader loader(corpus, collator, {.seed = 4, .loss_terms = 2});
        const BatchPlan plan(corpus.samples(), 40);
        const at::Tensor generator = state_of_generator();
        const StepCost cost =
            calibrate(world_, model, parameters, loader, plan, capacities, known, {});
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
};

TEST_F(CalibrationTest, MeasuresATimeThatGrowsAndTouchesNothing) {
    const StepCost cost = calibrate_toy(all(16));

    EXPECT_EQ(cost.micro_batch, 16);
    EXPECT_GT(cost.time_ms(1), 0);
    EXPECT_GE(cost.time_ms(64), cost.time_ms(16));
}

TEST_F(CalibrationTest, ARankWithoutWorkAndOneThatKnowsItsCostTakePart) {
    std::vector<std::int64_t> capacities = all(4);
    capacities.back() = 0;

    const std::optional<StepCost> known =
        world_.rank() == 0 ? std::optional(StepCost{.unit_ms = 7, .micro_batch = 4}) : std::nullopt;

    const StepCost cost = calibrate_toy(capacities, 1000, known);

    if (world_.rank() == 0 && capacities[0] > 0) {
        EXPECT_EQ(cost.unit_ms, 7);
    }
    if (world_.rank() == world_.size() - 1 && world_.size() > 1) {
        EXPECT_EQ(cost.micro_batch, 0);
    }
}

TEST_F(CalibrationTest, MemoryThatEndsBoundsTheMicroBatch) {
    const bool small = world_.rank() == 0;

    const StepCost cost = calibrate_toy(all(16), small ? 9 : 1000);

    EXPECT_EQ(cost.micro_batch, small ? 8 : 16);
}

TEST_F(CalibrationTest, TooLittleMemoryForAnythingEndsAllRanks) {
    EXPECT_THROW(calibrate_toy(all(8), world_.rank() == world_.size() - 1 ? 0 : 1000), Error);
}

}  // namespace
}  // namespace hetseq::test
