#include "hetseq/train/update_step.hpp"

#include <cmath>
#include <new>
#include <optional>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/shares/share_plan.hpp"

#include "test_world.hpp"
#include "train/failing_allocator.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

constexpr std::int64_t batch_size = 20;
const ForwardContext context{Mode::train, 5, 3};

/// One update of the toy model over all ranks, dropout on.
class Update {
public:
    Update(const MpiEnvironment& environment,
           const HostComm& world,
           const std::string& data,
           std::int64_t micro_batch,
           at::ScalarType type = at::kDouble)
        : communicator_{make_communicator(world, environment, at::kCPU)},
          data_{world, environment.thread_support() == ThreadSupport::multiple},
          model_{std::make_shared<ToyModel>(0.2)},
          parameters_{prepare(*model_, type), [](const std::string&) { return true; }},
          corpus_{
              data_, data, toy_schema(), {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1}},
          loader_{corpus_, collator_, {.seed = 5, .loss_terms = 2}},
          shares_{world,
                  "equal",
                  std::vector<std::int64_t>(static_cast<std::size_t>(world.size()), micro_batch)},
          reducer_{parameters_, *communicator_, 1},
          micro_batch_{micro_batch} {
        const GlobalBatch batch{.begin = 0, .end = batch_size};
        loader_.request(batch, shares_.cut(batch).slices, {.samples = micro_batch});
        share_.emplace(loader_.take());
        weights_ = share_->weights();
        world.all_reduce(std::span<double>(weights_), ReduceOp::sum);
        start_over();
    }

    // The same update again, as if memory had never been short.
    void start_over(const LossScale& loss_scale = {}) {
        step_.emplace(*pass_, parameters_, reducer_, nullptr, loss_scale);
        share_->recut({.samples = micro_batch_});
    }

    Verdict run() { return run_with(weights_); }
    Verdict run_with(const std::vector<double>& weights) {
        return step_->run(*share_, weights, context);
    }
    at::Tensor gradients() const { return parameters_.gradients().clone(); }
    ToyModel& model() { return *model_; }
    Pass& pass() { return *pass_; }
    FlatParameters& parameters() { return parameters_; }
    LoadedShare& share() { return *share_; }
    UpdateStep& step() { return *step_; }
    std::vector<double> weights() const { return weights_; }

private:
    static ToyModel& prepare(ToyModel& model, at::ScalarType type) {
        initialise_parameters(model, 5);
        model.to(type);
        return model;
    }

    std::unique_ptr<Communicator> communicator_;
    DataContext data_;
    std::shared_ptr<ToyModel> model_;
    std::unique_ptr<Pass> pass_ = make_whole_pass(*model_);
    FlatParameters parameters_;
    Corpus corpus_;
    ToyCollator collator_;
    Loader loader_;
    SharePlan shares_;
    GradientReducer reducer_;
    std::int64_t micro_batch_;
    std::optional<UpdateStep> step_;
    std::optional<LoadedShare> share_;
    std::vector<double> weights_;
};

class UpdateStepTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        world = new HostComm(test::world());
        corpus = new std::string(write_toy_corpus(*world, 30));
    }
    static void TearDownTestSuite() {
        remove_toy_corpus(*world, *corpus);
        delete corpus;
        delete world;
    }

    static std::unique_ptr<Update> together(at::ScalarType type = at::kDouble) {
        return std::make_unique<Update>(test::environment(), *world, *corpus, 4, type);
    }

    // Autograd on the concatenated batch: one micro-batch, no flat parameters, no reducer.
    static at::Tensor reference_gradients() {
        const HostComm alone = HostComm::serial();
        Update update(test::environment(), alone, *corpus, batch_size);
        ToyModel model(0.2);
        initialise_parameters(model, 5);
        model.to(at::kDouble);
        const ForwardResult result = model.forward(update.share().micro_batches().front(), context);
        (result.losses[0] / update.weights()[0] + result.losses[1] / update.weights()[1])
            .backward();

        at::Tensor flat = at::zeros_like(update.parameters().gradients());
        for (const auto& parameter : update.parameters().parameters()) {
            const at::Tensor gradient = model.named_parameters()[parameter.name].grad();
            if (gradient.defined())
                flat.narrow(0, parameter.offset, parameter.numel).copy_(gradient.flatten());
        }
        return flat;
    }

    static void expect_reference(const at::Tensor& gradients) {
        const at::Tensor reference = reference_gradients();
        EXPECT_LE((gradients - reference).abs().max().item<double>(), 1e-14);
        EXPECT_GT(reference.abs().max().item<double>(), 1e-3);
    }

    static HostComm* world;
    static std::string* corpus;
};

HostComm* UpdateStepTest::world = nullptr;
std::string* UpdateStepTest::corpus = nullptr;

TEST_F(UpdateStepTest, GradientsEqualAutogradOnTheWholeBatch) {
    const auto update = together();

    EXPECT_EQ(update->run(), Verdict::apply);

    expect_reference(update->gradients());
}

// Averaging by device gives another result, which the test above would notice. On one rank there is
// nothing to weight.
TEST_F(UpdateStepTest, WeightingByDeviceIsWrong) {
    const auto update = together();
    std::vector<double> by_device = update->share().weights();
    for (double& weight : by_device)
        weight *= world->size();

    update->run_with(by_device);

    const double error = (update->gradients() - reference_gradients()).abs().max().item<double>();
    EXPECT_EQ(error > 1e-6, world->size() > 1);
}

TEST_F(UpdateStepTest, ATermWithoutWeightDropsOut) {
    const auto update = together();
    const std::vector<double> weights{0, update->weights()[1]};

    EXPECT_EQ(update->run_with(weights), Verdict::apply);

    EXPECT_EQ(update->step().losses()[0], 0);
    EXPECT_TRUE(at::isfinite(update->gradients()).all().item<bool>());
}

TEST_F(UpdateStepTest, ALossThatIsNotFiniteOnOneRankSkipsOnAll) {
    const auto update = together();
    std::vector<double> weights = update->weights();
    if (world->rank() == world->size() - 1)
        weights[1] = std::nan("");

    EXPECT_EQ(update->run_with(weights), Verdict::skip_loss);
}

// Throws once, in a backward of this rank, when the gradient of `parameter` is ready for the
// (`passes` + 1)-th time.
void run_out_of_memory_once(ToyModel& model, const std::string& parameter, int passes) {
    model.named_parameters()[parameter].register_hook(
        [left = std::make_shared<int>(passes)](const at::Tensor& gradient) {
            if ((*left)-- == 0)
                throw std::bad_alloc();
            return gradient;
        });
}

class OutOfMemoryTest : public UpdateStepTest {
protected:
    // Rank 0 runs out of memory at `parameter` in the backward of its micro-batch `micro_batch`;
    // negative ones count from the last.
    OutOfMemoryTest() : update_{together()}, passed_{count_micro_batches()} {}

    void run_out_at(const std::string& parameter, int micro_batch) {
        if (world->rank() != 0)
            return;
        failed_after_ = micro_batch < 0 ? static_cast<int>(passed_) + micro_batch : micro_batch;
        run_out_of_memory_once(update_->model(), parameter, failed_after_);
    }
    // Rank 0 holds the hidden layer's values of no sample.
    void lacks_memory_for_layers() {
        if (world->rank() == 0)
            update_->model().set_spoil([model = &update_->model()](const auto&...) {
                if (model->recomputed_layers() == 0)
                    throw std::bad_alloc();
            });
    }
    void fail_at_each_tensor();
    std::int64_t count_micro_batches() const {
        return std::ssize(update_->share().micro_batches());
    }
    // Rank 0's forward passes: those until it failed, and its whole share in smaller micro-batches.
    std::int64_t forwards_of_the_failing_rank() const {
        return failed_after_ + 1 + count_micro_batches();
    }

    std::unique_ptr<Update> update_;
    std::int64_t passed_;  // micro-batches of one pass, before any is halved
    int failed_after_ = 0;
};

// The last parameter in registration order: no bucket has left yet.
TEST_F(OutOfMemoryTest, BeforeTheFirstBucketOnlyThatRankRecomputesItsShare) {
    run_out_at("classifier.bias", 0);

    EXPECT_EQ(update_->run(), Verdict::apply);

    const bool failed = world->rank() == 0;
    EXPECT_EQ(update_->step().reduced_cap().has_value(), failed);
    EXPECT_EQ(update_->model().forwards(), failed ? forwards_of_the_failing_rank() : passed_);
    expect_reference(update_->gradients());
}

// The case above, but with the reducer waiting for gradients already.
TEST_F(OutOfMemoryTest, InTheLastBackwardBeforeTheFirstBucketOnlyThatRankRecomputesItsShare) {
    run_out_at("classifier.bias", -1);

    EXPECT_EQ(update_->run(), Verdict::apply);

    const bool failed = world->rank() == 0;
    EXPECT_EQ(update_->step().reduced_cap().has_value(), failed);
    EXPECT_EQ(update_->model().forwards(), failed ? forwards_of_the_failing_rank() : passed_);
    expect_reference(update_->gradients());
}

// The first parameter, in the last micro-batch: other buckets have left.
TEST_F(OutOfMemoryTest, AfterTheFirstBucketAllRanksRepeatTheUpdate) {
    run_out_at("embedding", -1);

    EXPECT_EQ(update_->run(), Verdict::apply);

    const bool failed = world->rank() == 0;
    EXPECT_EQ(update_->step().reduced_cap().has_value(), failed);
    EXPECT_EQ(update_->model().forwards(), failed ? forwards_of_the_failing_rank() : 2 * passed_);
    expect_reference(update_->gradients());
}

// Rank 0's allocator fails at each tensor of forward and backward in turn: in the forward, in the
// backward before any bucket has left, and after each.
void OutOfMemoryTest::fail_at_each_tensor() {
    FailingAllocator allocator;
    const at::Tensor reference = reference_gradients();
    FailingAllocator::arm();
    EXPECT_EQ(update_->run(), Verdict::apply);
    const std::size_t allocations =
        std::stoul(world->broadcast(std::to_string(FailingAllocator::allocations()), 0));
    ASSERT_GT(allocations, 100U);
    int repeated_by_all = 0;

    for (std::size_t passed = 0; passed < allocations; ++passed) {
        update_->start_over();
        const std::int64_t forwards = update_->model().forwards();
        FailingAllocator::arm(world->rank() == 0 ? passed : allocations * 1000);

        EXPECT_EQ(update_->run(), Verdict::apply) << passed;

        FailingAllocator::arm();
        EXPECT_LE((update_->gradients() - reference).abs().max().item<double>(), 1e-14) << passed;
        EXPECT_EQ(update_->step().reduced_cap().has_value(), world->rank() == 0) << passed;
        repeated_by_all += update_->model().forwards() - forwards == 2 * passed_ ? 1 : 0;
    }
    if (world->rank() != 0) {
        EXPECT_GT(repeated_by_all, 10);
        EXPECT_LT(repeated_by_all, static_cast<int>(allocations) - 10);
    }
}

TEST_F(OutOfMemoryTest, WhereverTheAllocatorFailsTheGradientsAreTheSame) {
    fail_at_each_tensor();
}

TEST_F(OutOfMemoryTest, AlsoWhileALayerIsComputedAgain) {
    update_->model().recompute(1);
    fail_at_each_tensor();
}

TEST_F(OutOfMemoryTest, LayersAreRecomputedWhereThatCostsLessThanSmallerMicroBatches) {
    lacks_memory_for_layers();
    update_->step().recompute_at_need([](std::int64_t) { return true; });

    EXPECT_EQ(update_->run(), Verdict::apply);

    EXPECT_EQ(update_->model().recomputed_layers(), world->rank() == 0 ? 1 : 0);
    EXPECT_FALSE(update_->step().reduced_cap());
    expect_reference(update_->gradients());
}

TEST_F(OutOfMemoryTest, ElseMicroBatchesAreHalvedUntilTheyAreSingleSamples) {
    lacks_memory_for_layers();
    std::int64_t asked_for = 0;
    update_->step().recompute_at_need([&](std::int64_t micro_batches) {
        asked_for = micro_batches;
        return false;
    });

    EXPECT_EQ(update_->run(), Verdict::apply);

    const bool lacked = world->rank() == 0;
    EXPECT_EQ(update_->model().recomputed_layers(), lacked ? 1 : 0);
    EXPECT_EQ(update_->step().reduced_cap().value_or(MicroBatchCap{}).samples == 1, lacked);
    EXPECT_EQ(asked_for >= passed_, lacked);
    expect_reference(update_->gradients());
}

// Shares that were loaded before are cut to what the memory is known to hold.
TEST_F(OutOfMemoryTest, ItIsRememberedForSharesThatAreLoaded) {
    if (world->rank() == 0)
        update_->model().set_spoil([](const MicroBatch& batch, const ForwardContext&, auto&) {
            if (batch.samples > 2)
                throw std::bad_alloc();
        });
    EXPECT_EQ(update_->run(), Verdict::apply);
    const auto held = update_->step().reduced_cap();
    EXPECT_EQ(held.has_value(), world->rank() == 0);
    update_->share().recut({.samples = 4});
    const std::int64_t forwards = update_->model().forwards();

    EXPECT_EQ(update_->run(), Verdict::apply);

    EXPECT_EQ(update_->model().forwards() - forwards, count_micro_batches());
    EXPECT_EQ(update_->step().reduced_cap(), held);
    expect_reference(update_->gradients());
}

TEST_F(OutOfMemoryTest, WithAMicroBatchOfOneSampleIsAnError) {
    Update alone(test::environment(), HostComm::serial(), *corpus, 1);
    run_out_of_memory_once(alone.model(), "classifier.bias", 0);

    try {
        alone.run();
        FAIL() << "memory held the sample";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("--recompute all"));
    }
}

constexpr LossScale::State first_scale{};  // 65,536

// What came back to the loss's gradient has 11 bits and is below 65,520, as on a device in fp16,
// where it is 64 times the loss scale by the number of samples.
void narrow(const MicroBatch&, const ForwardContext&, ForwardResult& result) {
    result.losses[1] = (result.losses[1] / 64).to(at::kHalf).to(at::kDouble) * 64;
}

// No gradient of the toy is below 2^-126.
TEST_F(UpdateStepTest, ALossScaleChangesNoBitOfGradientsAndNorm) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        const auto update = together(type);
        EXPECT_EQ(update->run(), Verdict::apply);
        const at::Tensor plain = update->gradients();
        const double norm = update->step().gradient_norm();
        update->start_over(LossScale{first_scale});

        EXPECT_EQ(update->run(), Verdict::apply);

        EXPECT_EQ(update->step().gradient_scale(), 65536);
        EXPECT_EQ(update->gradients().scalar_type(), type);
        EXPECT_TRUE(update->gradients().equal(plain * 65536)) << type;
        EXPECT_EQ(update->step().gradient_norm(), norm) << type;
    }
}

class LossScaleInUpdateTest : public UpdateStepTest {
protected:
    // Rank 0 computes a part in 16 bits, and the others do not.
    LossScaleInUpdateTest() : update_{together()} {
        if (world->rank() == 0)
            update_->model().set_spoil(narrow);
        EXPECT_EQ(update_->run(), Verdict::apply);
        without_scale_ = update_->gradients();
        norm_ = update_->step().gradient_norm();
        passed_ = update_->model().forwards();
    }

    void expect_scaled_by(double scale) {
        EXPECT_EQ(update_->step().gradient_scale(), scale);
        EXPECT_TRUE(update_->gradients().equal(without_scale_ * scale));
        EXPECT_EQ(update_->step().gradient_norm(), norm_);
    }
    std::int64_t passes() const { return update_->model().forwards() / passed_; }

    std::unique_ptr<Update> update_;
    at::Tensor without_scale_;
    double norm_ = 0;
    std::int64_t passed_ = 0;
};

TEST_F(LossScaleInUpdateTest, ItChangesNoBitWhereItFits) {
    update_->start_over(LossScale{{.value = 1024}});

    EXPECT_EQ(update_->run(), Verdict::apply);

    expect_scaled_by(1024);
    EXPECT_EQ(passes(), 2);
}

TEST_F(LossScaleInUpdateTest, AnOverflowOnOneRankRepeatsTheUpdateOnAll) {
    update_->start_over(LossScale{first_scale});

    EXPECT_EQ(update_->run(), Verdict::apply);

    expect_scaled_by(2048);
    EXPECT_EQ(update_->step().loss_scale().state()->overflows, 2);
    EXPECT_EQ(passes(), 4);
    EXPECT_FALSE(update_->step().timing().is_regular);
}

TEST_F(LossScaleInUpdateTest, WhatStaysNotFiniteIsSkippedAndTheScaleIsAsBefore) {
    if (world->rank() == world->size() - 1)
        update_->model().set_spoil([](auto&, auto&, ForwardResult& result) {
            result.losses[0] = result.losses[0] + (result.losses[0] * 0).sqrt();
        });
    update_->start_over(LossScale{first_scale});

    EXPECT_EQ(update_->run(), Verdict::skip_gradient);

    EXPECT_EQ(update_->step().loss_scale().value(), 65536);
}

TEST_F(LossScaleInUpdateTest, WithoutOneAGradientThatIsNotFiniteIsSkippedAtOnce) {
    update_->model().set_spoil([](auto&, auto&, ForwardResult& result) {
        result.losses[0] = result.losses[0] + (result.losses[0] * 0).sqrt();
    });
    update_->start_over();

    EXPECT_EQ(update_->run(), Verdict::skip_gradient);

    EXPECT_EQ(passes(), 2);
}

TEST_F(LossScaleInUpdateTest, ALossThatIsNotFiniteIsNoOverflow) {
    update_->start_over(LossScale{first_scale});
    std::vector<double> weights = update_->weights();
    if (world->rank() == world->size() - 1)
        weights[0] = std::nan("");

    EXPECT_EQ(update_->run_with(weights), Verdict::skip_loss);

    EXPECT_EQ(update_->step().loss_scale().value(), 65536);
    EXPECT_EQ(update_->step().loss_scale().state()->overflows, 0);
}

// The zeros of the rank that ran out of memory may hide an overflow: the next pass finds it.
TEST_F(LossScaleInUpdateTest, ARankThatRunsOutOfMemoryLeavesTheScaleAsItIs) {
    update_->start_over(LossScale{first_scale});
    const auto batches = static_cast<int>(std::ssize(update_->share().micro_batches()));
    if (world->rank() == world->size() - 1)
        run_out_of_memory_once(update_->model(), "embedding", batches - 1);

    EXPECT_EQ(update_->run(), Verdict::apply);

    EXPECT_EQ(update_->step().gradient_scale(), 2048);
    EXPECT_EQ(update_->step().loss_scale().state()->overflows, 2);
    EXPECT_LE((update_->gradients() / 2048 - without_scale_).abs().max().item<double>(), 1e-5);
}

TEST_F(UpdateStepTest, NonFiniteSamplesAreThoseOfTheMicroBatchesWithSuchALoss) {
    const auto update = together();
    const auto& micro_batches = update->share().micro_batches();
    const at::Tensor bad = micro_batches.back().sample_ids;
    update->model().set_spoil([&](const MicroBatch& batch, const ForwardContext&, auto& result) {
        if (batch.sample_ids.equal(bad))
            result.losses[1] = result.losses[1] / 0;
    });

    const std::vector<std::int64_t> samples =
        non_finite_samples(update->pass(), update->share(), context);

    EXPECT_EQ(samples,
              std::vector<std::int64_t>(bad.const_data_ptr<std::int64_t>(),
                                        bad.const_data_ptr<std::int64_t>() + bad.numel()));
}

TEST_F(UpdateStepTest, NonFiniteGradientsAreFoundWhereTheLossIsFinite) {
    const auto update = together();
    const at::Tensor bad = update->share().micro_batches().back().sample_ids;
    update->model().set_spoil([&](const MicroBatch& batch, const ForwardContext&, auto& result) {
        if (batch.sample_ids.equal(bad) && result.losses[1].requires_grad())
            result.losses[1].register_hook(
                [](const at::Tensor& gradient) { return gradient * NAN; });
    });

    const auto by_loss = non_finite_samples(update->pass(), update->share(), context);
    const auto by_gradient = update->step().non_finite_gradient_samples(update->share(), context);

    EXPECT_TRUE(by_loss.empty());
    EXPECT_EQ(by_gradient,
              std::vector<std::int64_t>(bad.const_data_ptr<std::int64_t>(),
                                        bad.const_data_ptr<std::int64_t>() + bad.numel()));
    EXPECT_EQ(update->gradients().abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace hetseq::test
