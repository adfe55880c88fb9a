// An update of a pipeline is that of one rank with the same micro-batches.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/train/update_step.hpp"

#include "model/chain_models.hpp"
#include "test_world.hpp"
#include "train/failing_allocator.hpp"
#include "train/pipeline/staged_replica.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

const ForwardContext third_update{Mode::train, 5, 2};

// One update, and again.
class StagedUpdate {
public:
    StagedUpdate(const StagedCase& staged,
                 const HostComm& world,
                 std::int64_t batch,
                 std::int64_t micro_batch,
                 const LossScale& loss_scale = {})
        : replica_{staged, world}, share_{share_of(staged.model, batch, micro_batch)} {
        start_over(loss_scale);
        share_.recut({.samples = micro_batch});
    }

    void start_over(const LossScale& loss_scale = {}) {
        step_.emplace(
            replica_.pass(), replica_.parameters(), replica_.reducer(), nullptr, loss_scale);
    }
    Verdict run() { return run_with(share_.weights()); }
    Verdict run_with(const std::vector<double>& weights) {
        return step_->run(share_, weights, third_update);
    }
    // Nothing is summed. Returns how often that was asked for.
    int run_alone() {
        UpdateStatus status(1, at::kCPU, replica_.parameters().all_blocks());
        int ended = 0;
        step_->run_alone(share_, share_.weights(), third_update, status, [&] { ++ended; });
        return ended;
    }
    std::vector<std::int64_t> bad_gradients() {
        return step_->non_finite_gradient_samples(share_, third_update);
    }
    StagedReplica& replica() { return replica_; }
    UpdateStep& step() { return *step_; }
    LoadedShare& share() { return share_; }

private:
    StagedReplica replica_;
    LoadedShare share_;
    std::optional<UpdateStep> step_;
};

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
    const double scale = b.abs().max().item<double>();
    return scale == 0 ? a.abs().max().item<double>() : (a - b).abs().max().item<double>() / scale;
}

// Of a stage and of the whole: the same bytes, but for `tied` ones, whose parts are added in
// another order.
void expect_same(StagedUpdate& stage,
                 StagedUpdate& whole,
                 const std::set<std::string>& tied,
                 double tolerance) {
    const auto expected = whole.replica().gradients();
    for (const auto& [name, gradient] : stage.replica().gradients()) {
        if (tied.count(name) > 0 || tolerance > 0)
            EXPECT_LE(relative_difference(gradient, expected.at(name)), 1e-12) << name;
        else
            EXPECT_TRUE(gradient.equal(expected.at(name))) << name;
    }
    EXPECT_EQ(stage.step().losses(), whole.step().losses());
    const double norm = whole.step().gradient_norm();
    EXPECT_GT(norm, 0);
    EXPECT_LE(std::abs(stage.step().gradient_norm() - norm),
              tied.empty() && tolerance == 0 ? 0 : 1e-12 * norm);
}

class PipelineStepTest : public testing::Test {
protected:
    std::vector<std::vector<UnitRange>> cuts(const ModelCase& model) const {
        return all_cuts(model.make()->chain().size(), static_cast<std::size_t>(world_.size()));
    }
    // All cuts into two stages. Of others the first one, the last one, and every third between:
    // each unit but the first begins a stage in one of them.
    std::vector<std::vector<UnitRange>> some_cuts(const ModelCase& model) const {
        const auto all = cuts(model);
        std::vector<std::vector<UnitRange>> some;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (world_.size() == 2 || i % 3 == 0 || i + 1 == all.size())
                some.push_back(all[i]);
        return some;
    }
    // Even, as far as that goes.
    std::vector<UnitRange> one_cut(const ModelCase& model) const {
        const auto all = cuts(model);
        return all[all.size() / 2];
    }
    // `expected` of one rank.
    void expect_update_of_one_rank(const StagedCase& staged,
                                   std::int64_t batch,
                                   std::int64_t micro_batch) {
        StagedUpdate whole(staged.whole(), HostComm::serial(), batch, micro_batch);
        StagedUpdate stage(staged, world_, batch, micro_batch);

        EXPECT_EQ(whole.run(), Verdict::apply);
        EXPECT_EQ(stage.run(), Verdict::apply);

        expect_same(stage, whole, tied_names(staged.model), 0);
    }
    bool is_last() const { return world_.rank() == world_.size() - 1; }

    HostComm world_ = test::world();
};

class PipelineModelTest : public PipelineStepTest, public testing::WithParamInterface<ModelCase> {};

TEST_P(PipelineModelTest, CutsHaveTheGradientsLossesAndNormOfOneRank) {
    const StagedCase staged{.model = GetParam(), .precision = Precision::fp64};
    StagedUpdate whole(staged, HostComm::serial(), 7, 2);
    EXPECT_EQ(whole.run(), Verdict::apply);

    for (const auto& cut : some_cuts(GetParam())) {
        SCOPED_TRACE(text_of(cut));
        StagedUpdate stage(staged.cut(cut), world_, 7, 2);

        EXPECT_EQ(stage.run(), Verdict::apply);

        expect_same(stage, whole, tied_names(GetParam()), 0);
    }
}

std::vector<ModelCase> piped_models() {
    const BertClassifierSetup weighted{.labels = {"A", "B", "C"}, .class_weights = {0.5, 1, 3}};
    BertClassifierSetup frozen = weighted;
    frozen.frozen_layers = 2;
    std::vector<ModelCase> models;
    for (const char* name : {"Mnist",
                             "Bert",
                             "BertInRows",
                             "TiedBert",
                             "TokenLabels",
                             "Transformer",
                             "SharedByAllPreNorm"})
        models.push_back(model_named(name));
    models.push_back({"WeightedClasses",
                      [=] { return make_bert_sequence_classifier(chain_bert_config(), weighted); },
                      labelled_texts});
    models.push_back({"FrozenLayers",
                      [=] { return make_bert_sequence_classifier(chain_bert_config(), frozen); },
                      labelled_texts});
    return models;
}

INSTANTIATE_TEST_SUITE_P(Models,
                         PipelineModelTest,
                         testing::ValuesIn(piped_models()),
                         [](const auto& info) { return name_of(info); });

TEST_F(PipelineStepTest, AnyNumberOfMicroBatchesGivesTheBytesOfOneRank) {
    for (const char* name : {"Mnist", "Bert"}) {
        StagedCase staged{.model = model_named(name)};
        staged.units = one_cut(staged.model);
        for (const auto& [batch, micro_batch] :
             {std::pair{1, 1}, {5, 5}, {4, 2}, {9, 1}, {10, 3}}) {
            SCOPED_TRACE(std::string(name) + " " + std::to_string(batch) + " by " +
                         std::to_string(micro_batch));
            expect_update_of_one_rank(staged, batch, micro_batch);
        }
    }
}

TEST_F(PipelineStepTest, StagesMayStandInAnyOrderOfRanks) {
    StagedCase staged{.model = model_named("Bert")};
    staged.units = one_cut(staged.model);
    for (int rank = world_.size(); rank-- > 0;)
        staged.ranks.push_back(rank);

    expect_update_of_one_rank(staged, 6, 2);
}

TEST_F(PipelineStepTest, AShareOfNothingAddsNothing) {
    StagedCase staged{.model = model_named("Mnist")};
    staged.units = one_cut(staged.model);
    StagedUpdate stage(staged, world_, 0, 2);

    EXPECT_EQ(stage.run_with({5}), Verdict::apply);

    EXPECT_EQ(stage.step().gradient_norm(), 0);
    EXPECT_EQ(stage.step().losses(), std::vector<double>{0});
}

// In nobody's batch is anything of it.
TEST_F(PipelineStepTest, ATermWithoutWeightDropsOut) {
    StagedCase staged{.model = model_named("Bert")};
    staged.units = one_cut(staged.model);
    StagedUpdate whole(staged.whole(), HostComm::serial(), 6, 2);
    StagedUpdate stage(staged, world_, 6, 2);
    std::vector<double> weights = whole.share().weights();
    weights[0] = 0;

    EXPECT_EQ(whole.run_with(weights), Verdict::apply);
    EXPECT_EQ(stage.run_with(weights), Verdict::apply);

    expect_same(stage, whole, {}, 0);
}

TEST_F(PipelineStepTest, NothingTrainedInFrontMeansThatNoGradientIsSentBack) {
    StagedCase staged{.model = piped_models().back()};
    const auto size = static_cast<std::size_t>(world_.size());
    staged.units = all_cuts(staged.chain_length(), size).front();  // [0, 1) [1, ...)
    StagedUpdate stage(staged, world_, 6, 2);
    stage.replica().channel()->take_traffic();

    EXPECT_EQ(stage.run(), Verdict::apply);

    EXPECT_FALSE(stage.replica().stage().number == 1 && stage.replica().stage().sends_gradients);
    stage.replica().channel()->wait_for_sends();
    if (world_.rank() == 0) {
        EXPECT_EQ(stage.replica().channel()->take_traffic().bytes_received, 0);
        EXPECT_EQ(stage.replica().parameters().values().numel(), 0);
    }
}

// It ends first, but tells how long all of them took.
TEST_F(PipelineStepTest, TheFirstStageWaitsForTheOthersWhereNothingTrainsInIt) {
    StagedCase staged{.model = piped_models().back()};
    staged.units = all_cuts(staged.chain_length(), static_cast<std::size_t>(world_.size())).front();
    StagedUpdate stage(staged, world_, 6, 2);
    constexpr std::chrono::milliseconds longest{300};
    if (is_last())
        stage.replica().parameters().parameters().front().tensor.register_hook(
            [&](const at::Tensor& gradient) {
                std::this_thread::sleep_for(longest);
                return gradient;
            });

    EXPECT_EQ(stage.run(), Verdict::apply);

    if (world_.rank() == 0) {
        const double pass_ms = stage.step().timing().pass_ms;
        EXPECT_GE(pass_ms, static_cast<double>(longest.count()));
        EXPECT_LT(stage.step().ms(RankTime::compute), pass_ms / 2);
    }
}

// The first stage would compute all of a validation's micro-batches at once, and hold them.
TEST_F(PipelineStepTest, WhereNoGradientsComeBackTheFirstStageDoesNotRunAhead) {
    StagedCase staged{.model = model_named("Mnist")};
    staged.units = one_cut(staged.model);
    const auto few = staged.model.batch;
    staged.model.name = "ManyImages";
    staged.model.batch = [few](std::int64_t begin, std::int64_t count) {
        return few(begin % 20, count);
    };
    StagedReplica replica(staged, world_);
    LoadedShare share = share_of(staged.model, 100, 1);
    share.recut({.samples = 1});
    // The clock is the machine's. Stages and messages between may hold less than 60 micro-batches.
    const auto now_ms = [] {
        return std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    };
    int taken = 0;
    double fortieth_ms = 0;

    replica.pass().forward(
        share, {Mode::evaluate, 5, 0}, [&](const MicroBatch&, const ForwardResult&) {
            if (taken++ == 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(300));
            if (taken == 40)
                fortieth_ms = now_ms();
        });

    const double ended_ms = now_ms();
    EXPECT_EQ(taken, is_last() ? 100 : 0);
    EXPECT_GE(world_.all_gather(ended_ms).front(), world_.all_gather(fortieth_ms).back());
    replica.channel()->wait_for_sends();
}

TEST_F(PipelineStepTest, RecomputedLayersGiveTheSameBytes) {
    StagedCase staged{.model = model_named("Bert")};
    StagedUpdate whole(staged, HostComm::serial(), 7, 2);
    EXPECT_EQ(whole.run(), Verdict::apply);
    staged.recomputed = 10;

    for (const auto& cut : some_cuts(staged.model)) {
        SCOPED_TRACE(text_of(cut));
        StagedUpdate stage(staged.cut(cut), world_, 7, 2);

        EXPECT_EQ(stage.run(), Verdict::apply);

        EXPECT_EQ(stage.replica().model().recomputed_layers(),
                  stage.replica().model().recomputable_layers());
        expect_same(stage, whole, {}, 0);
    }
}

TEST_F(PipelineStepTest, InFp32ALossScaleChangesNoBit) {
    StagedCase staged{.model = model_named("Mnist")};
    staged.units = one_cut(staged.model);
    StagedUpdate whole(staged.whole(), HostComm::serial(), 7, 2);
    EXPECT_EQ(whole.run(), Verdict::apply);
    StagedUpdate stage(staged, world_, 7, 2, LossScale{LossScale::State{}});

    EXPECT_EQ(stage.run(), Verdict::apply);

    EXPECT_EQ(stage.step().gradient_scale(), 65536);
    EXPECT_EQ(stage.step().gradient_norm(), whole.step().gradient_norm());
    for (const auto& [name, gradient] : stage.replica().gradients())
        EXPECT_TRUE(gradient.equal(65536 * whole.replica().gradients().at(name))) << name;
}

// The first stage's gradients overflow as those of a device in fp16 would.
TEST_F(PipelineStepTest, AnOverflowAtOneStageLowersTheScaleOnAll) {
    StagedCase staged{.model = model_named("Mnist"), .precision = Precision::fp64};
    staged.units = one_cut(staged.model);
    StagedUpdate stage(staged, world_, 7, 2, LossScale{{.value = 1024}});
    if (world_.rank() == 0)
        stage.replica().parameters().parameters().front().tensor.register_hook(
            [&](const at::Tensor& gradient) {
                return stage.step().loss_scale().value() > 512 ? gradient / 0 : gradient;
            });

    EXPECT_EQ(stage.run(), Verdict::apply);

    EXPECT_EQ(stage.step().gradient_scale(), 512);
    EXPECT_TRUE(std::isfinite(stage.step().gradient_norm()));
}

// An image of which nothing finite comes.
MicroBatch images_with_a_bad_one(std::int64_t begin, std::int64_t count) {
    constexpr std::int64_t bad = 4;
    MicroBatch batch = images(begin, count);
    if (begin <= bad && bad < begin + count) {
        at::Tensor pixels = batch.tensors.at("images").clone();
        pixels[bad - begin].fill_(NAN);
        batch.tensors["images"] = pixels;
    }
    return batch;
}

class NonFiniteTest : public PipelineStepTest {
protected:
    // The samples that any rank names.
    std::vector<std::int64_t> named(const std::vector<std::int64_t>& own) {
        std::vector<std::int64_t> all;
        for (const std::string& text : world_.all_gather([&] {
                 std::string joined;
                 for (const std::int64_t sample : own)
                     joined += std::to_string(sample) + " ";
                 return joined;
             }())) {
            std::istringstream words(text);
            for (std::int64_t sample = 0; words >> sample;)
                all.push_back(sample);
        }
        return all;
    }
};

TEST_F(NonFiniteTest, ALossThatIsNotFiniteIsSkippedByAllAndItsSamplesAreNamedOnce) {
    StagedCase staged{
        .model = {"BadMnist", [] { return make_mnist_cnn(); }, images_with_a_bad_one}};
    staged.units = one_cut(staged.model);
    StagedUpdate stage(staged, world_, 7, 2);

    EXPECT_EQ(stage.run(), Verdict::skip_loss);

    EXPECT_EQ(named(non_finite_samples(stage.replica().pass(), stage.share(), third_update)),
              (std::vector<std::int64_t>{4, 5}));
}

// On every stage.
TEST_F(NonFiniteTest, AGradientThatIsNotFiniteIsSkippedByAllAndItsSamplesAreNamedOnce) {
    StagedCase staged{.model = model_named("Bert")};
    staged.units = one_cut(staged.model);
    StagedUpdate stage(staged, world_, 7, 2);
    for (const auto& parameter : stage.replica().parameters().parameters())
        parameter.tensor.register_hook([&](const at::Tensor& gradient) {
            return stage.replica().pass().at_work() == 1 ? gradient * NAN : gradient;
        });

    EXPECT_EQ(stage.run(), Verdict::skip_gradient);

    EXPECT_EQ(named(stage.bad_gradients()), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(stage.replica().parameters().gradients().abs().sum().item<double>(), 0);
}

TEST_F(NonFiniteTest, AlsoWhereOneStageAloneHasThem) {
    StagedCase staged{.model = model_named("Bert")};
    staged.units = one_cut(staged.model);
    for (int bad_rank = 0; bad_rank < world_.size(); ++bad_rank) {
        SCOPED_TRACE(bad_rank);
        StagedUpdate stage(staged, world_, 7, 2);
        if (world_.rank() == bad_rank)
            stage.replica().parameters().parameters().front().tensor.register_hook(
                [&](const at::Tensor& gradient) {
                    return stage.replica().pass().at_work() == 0 ? gradient * NAN : gradient;
                });

        EXPECT_EQ(stage.run(), Verdict::skip_gradient);

        EXPECT_EQ(named(stage.bad_gradients()), (std::vector<std::int64_t>{0, 1}));
    }
}

class PipelineMemoryTest : public PipelineStepTest {
protected:
    // The allocator of one stage fails at every `step`th tensor of the update in turn: in forward
    // and in backward.
    void fail_at_tensors(const ModelCase& model, int failing, std::size_t step) {
        StagedCase staged{.model = model, .precision = Precision::fp64};
        staged.units = one_cut(model);
        FailingAllocator allocator;
        StagedUpdate whole(staged.whole(), HostComm::serial(), 6, 2);
        EXPECT_EQ(whole.run(), Verdict::apply);
        StagedUpdate stage(staged, world_, 6, 2);
        FailingAllocator::arm();
        EXPECT_EQ(stage.run(), Verdict::apply);
        const std::size_t allocations =
            std::stoul(world_.broadcast(std::to_string(FailingAllocator::allocations()), failing));
        ASSERT_GT(allocations, 10U);

        for (std::size_t passed = 0; passed < allocations; passed += step) {
            SCOPED_TRACE(passed);
            stage.start_over();
            stage.share().recut({.samples = 2});
            if (world_.rank() == failing)
                FailingAllocator::arm(passed);

            EXPECT_EQ(stage.run(), Verdict::apply);

            FailingAllocator::arm();
            EXPECT_EQ(stage.step().reduced_cap(), MicroBatchCap{.samples = 1});
            for (const auto& [name, gradient] : stage.replica().gradients())
                EXPECT_LE(relative_difference(gradient, whole.replica().gradients().at(name)),
                          1e-12)
                    << name;
        }
    }
};

TEST_F(PipelineMemoryTest, WhereverAStageRunsOutOfItAllRepeatWithSmallerMicroBatches) {
    for (int failing = 0; failing < world_.size(); ++failing) {
        SCOPED_TRACE(failing);
        fail_at_tensors(model_named("Mnist"), failing, 13);
    }
}

// Whose pairs do not depend on how they are cut.
TEST_F(PipelineMemoryTest, AlsoWithTiedParametersAndSeveralHiddenStates) {
    const ModelCase evenly_paired{"EvenlyPaired", model_named("SharedByAllPreNorm").make, pairs};
    for (int failing = 0; failing < world_.size(); ++failing) {
        SCOPED_TRACE(failing);
        fail_at_tensors(evenly_paired, failing, 211);
    }
}

TEST_F(PipelineMemoryTest, BeforeAnythingIsSummedAllComputeAgainInSmallerMicroBatches) {
    StagedCase staged{.model = model_named("Mnist"), .precision = Precision::fp64};
    staged.units = one_cut(staged.model);
    StagedUpdate whole(staged.whole(), HostComm::serial(), 6, 2);
    EXPECT_EQ(whole.run(), Verdict::apply);
    for (int failing = 0; failing < world_.size(); ++failing) {
        SCOPED_TRACE(failing);
        StagedUpdate stage(staged, world_, 6, 2);
        int fails = world_.rank() == failing ? 1 : 0;
        stage.replica().parameters().parameters().front().tensor.register_hook(
            [&](const at::Tensor& gradient) -> at::Tensor {
                if (fails-- > 0)
                    throw std::bad_alloc();
                return gradient;
            });

        EXPECT_EQ(stage.run_alone(), 1);

        EXPECT_EQ(stage.step().reduced_cap(), MicroBatchCap{.samples = 1});
        for (const auto& [name, gradient] : stage.replica().gradients())
            EXPECT_LE(relative_difference(gradient, whole.replica().gradients().at(name)), 1e-12)
                << name;
    }
}

// The last micro-batch has one sample; the others, which are in flight beside it, have two.
TEST_F(PipelineMemoryTest, WhereASingleSampleLacksMemoryTheLargerOnesInFlightAreHalved) {
    StagedCase staged{.model = model_named("Mnist"), .precision = Precision::fp64};
    staged.units = one_cut(staged.model);
    for (int failing = 0; failing < world_.size(); ++failing) {
        SCOPED_TRACE(failing);
        StagedUpdate stage(staged, world_, 5, 2);
        int fails = world_.rank() == failing ? 1 : 0;
        stage.replica().parameters().parameters().front().tensor.register_hook(
            [&](const at::Tensor& gradient) -> at::Tensor {
                if (stage.replica().pass().at_work() == 2 && fails-- > 0)
                    throw std::bad_alloc();
                return gradient;
            });

        EXPECT_EQ(stage.run(), Verdict::apply);

        EXPECT_EQ(stage.step().reduced_cap(), MicroBatchCap{.samples = 1});
    }
}

TEST_F(PipelineMemoryTest, ASampleThatDoesNotFitIsTheSameErrorOnAllRanks) {
    StagedCase staged{.model = model_named("Mnist")};
    staged.units = one_cut(staged.model);
    for (int failing = 0; failing < world_.size(); ++failing) {
        SCOPED_TRACE(failing);
        StagedUpdate stage(staged, world_, 6, 2);
        if (world_.rank() == failing)
            stage.replica().parameters().parameters().front().tensor.register_hook(
                [](const at::Tensor& gradient) -> at::Tensor {
                    if (gradient.defined())
                        throw std::bad_alloc();
                    return gradient;
                });

        try {
            stage.run();
            FAIL() << "memory held the sample";
        } catch (const AgreedError& error) {
            EXPECT_THAT(error.what(),
                        testing::HasSubstr("does not hold a single sample, sample 0"));
        }
    }
}

TEST_F(PipelineMemoryTest, LayersAreRecomputedWhereThatCostsLess) {
    StagedCase staged{.model = model_named("Bert"), .precision = Precision::fp64};
    staged.units = world_.size() == 2 ? std::vector<UnitRange>{{0, 2}, {2, 5}}
                                      : std::vector<UnitRange>{{0, 2}, {2, 3}, {3, 5}};
    StagedUpdate whole(staged.whole(), HostComm::serial(), 6, 2);
    EXPECT_EQ(whole.run(), Verdict::apply);
    StagedUpdate stage(staged, world_, 6, 2);
    stage.step().recompute_at_need([](std::int64_t) { return true; });
    int fails = is_last() ? 1 : 0;
    stage.replica().parameters().parameters().front().tensor.register_hook(
        [&](const at::Tensor& gradient) -> at::Tensor {
            if (fails-- > 0)
                throw std::bad_alloc();
            return gradient;
        });

    EXPECT_EQ(stage.run(), Verdict::apply);

    EXPECT_EQ(stage.replica().model().recomputed_layers() > 0, is_last());
    EXPECT_FALSE(stage.step().reduced_cap());
    expect_same(stage, whole, {}, 0);
}

// Counts the micro-batches that a forward asks for.
class CountingTransfer final : public DeviceTransfer {
public:
    std::unique_ptr<Arrival> send(std::vector<MicroBatch>&) override { return nullptr; }
    MicroBatch bring(const MicroBatch& batch) override {
        ++forwards;
        most_in_flight = std::max(most_in_flight, forwards - backwards);
        return batch;
    }

    int forwards = 0, backwards = 0, most_in_flight = 0;
};

// 1F1B: itself, and one for each stage behind it.
TEST_F(PipelineStepTest, OfManyMicroBatchesFewAreInFlight) {
    StagedCase staged{.model = model_named("Mnist")};
    staged.units = one_cut(staged.model);
    const auto transfer = std::make_shared<CountingTransfer>();
    StagedReplica replica(staged, world_);
    LoadedShare share = share_of(staged.model, 24, 1, transfer);
    UpdateStep step(replica.pass(), replica.parameters(), replica.reducer());
    replica.parameters().parameters().front().tensor.register_hook([&](const at::Tensor& gradient) {
        ++transfer->backwards;
        return gradient;
    });

    EXPECT_EQ(step.run(share, share.weights(), third_update), Verdict::apply);

    EXPECT_EQ(transfer->forwards, 24);
    EXPECT_EQ(transfer->backwards, 24);
    EXPECT_EQ(transfer->most_in_flight, world_.size() - static_cast<int>(replica.stage().number));
}

}  // namespace
}  // namespace hetseq::test
