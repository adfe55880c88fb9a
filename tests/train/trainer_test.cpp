#include "hetseq/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/watch/run_control.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

class TrainerTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        world = new HostComm(test::world());
        corpus = new std::string(write_toy_corpus(*world, 31));
    }
    static void TearDownTestSuite() {
        remove_toy_corpus(*world, *corpus);
        delete corpus;
        delete world;
    }

    // Every rank has work.
    static ToyRun run_of(std::int64_t updates) {
        return {.data = *corpus,
                .capacities = std::vector<std::int64_t>(static_cast<std::size_t>(world->size()), 4),
                .updates = updates,
                .dropout = 0.1};
    }
    static ToyResult train(const ToyRun& run) {
        return train_toy(test::environment(), *world, run);
    }
    static std::string error_of(const ToyRun& run) {
        try {
            train(run);
        } catch (const BadData& error) {
            return error.what();
        }
        return "no error";
    }

    // Makes the last rank's forward do `harm` in the updates that `is_bad` names, counted from 0.
    template <class IsBad, class Harm>
    static void harm(ToyRun& run, IsBad is_bad, Harm do_harm) {
        run.spoil = [=](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
            const bool here = world->rank() == world->size() - 1;
            if (here && context.mode == Mode::train && is_bad(context.update))
                do_harm(result);
        };
    }
    // The gradient stays as it is.
    static void make_loss_infinite(ForwardResult& result) {
        result.losses[1] = result.losses[1] + infinity;
    }
    // The loss stays as it is.
    static void make_gradient_infinite(ForwardResult& result) {
        if (result.losses[0].requires_grad())
            result.losses[0].register_hook([](const at::Tensor& gradient) { return gradient / 0; });
    }

    static HostComm* world;
    static std::string* corpus;
};

HostComm* TrainerTest::world = nullptr;
std::string* TrainerTest::corpus = nullptr;

bool is_last_of_three(std::int64_t update) {
    return update == 2;
}

TEST_F(TrainerTest, UpdatesWhoseSamplesHaveNoWeightAreToldOfOnce) {
    ToyRun run = run_of(3);
    run.weightless = {0, 1};
    run.tells = true;

    testing::internal::CaptureStderr();
    const ToyResult result = train(run);
    const std::string log = testing::internal::GetCapturedStderr();

    EXPECT_EQ(result.report.skipped, 0);
    EXPECT_EQ(result.losses, (std::vector<double>{0, 0}));
    EXPECT_EQ(log.find("update 1: no sample of its batch has a weight") != std::string::npos,
              world->rank() == 0);
    EXPECT_EQ(log.find("no sample"), log.rfind("no sample"));
}

TEST_F(TrainerTest, UpdatesWhoseSamplesHaveWeightsAreNotToldOf) {
    ToyRun run = run_of(3);
    run.tells = true;

    testing::internal::CaptureStderr();
    train(run);

    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::Not(testing::HasSubstr("no sample")));
}

TEST_F(TrainerTest, AnUpdateWithALossThatIsNotFiniteIsSkipped) {
    ToyRun run = run_of(3);
    harm(run, is_last_of_three, make_loss_infinite);

    const ToyResult result = train(run);

    EXPECT_EQ(result.report.skipped, 1);
    EXPECT_EQ(result.report.updates, 3);
    EXPECT_TRUE(result.parameters.equal(train(run_of(2)).parameters));
}

TEST_F(TrainerTest, AnUpdateWithAGradientThatIsNotFiniteIsSkipped) {
    ToyRun run = run_of(3);
    harm(run, is_last_of_three, make_gradient_infinite);

    const ToyResult result = train(run);

    EXPECT_EQ(result.report.skipped, 1);
    EXPECT_TRUE(std::isfinite(result.losses[0] + result.losses[1]));
    EXPECT_TRUE(result.parameters.equal(train(run_of(2)).parameters));
}

TEST_F(TrainerTest, UpdatesAfterASkippedOneGoOn) {
    ToyRun run = run_of(4);
    harm(run, is_last_of_three, make_loss_infinite);

    const ToyResult result = train(run);

    EXPECT_EQ(result.report.skipped, 1);
    EXPECT_TRUE(at::isfinite(result.parameters).all().item<bool>());
    EXPECT_FALSE(result.parameters.equal(train(run_of(2)).parameters));
}

TEST_F(TrainerTest, TooManySkipsInARowEndWithAnErrorOnAllRanks) {
    for (const auto harm_done : {make_loss_infinite, make_gradient_infinite}) {
        ToyRun run = run_of(10);
        run.max_skips = 3;
        std::int64_t last_update = 0;
        harm(
            run, [](std::int64_t update) { return update >= 2; }, harm_done);
        const auto spoil = run.spoil;
        run.spoil = [&](const MicroBatch& batch, const ForwardContext& context, auto& result) {
            last_update = std::max(last_update, context.update);
            spoil(batch, context, result);
        };

        const std::string error = error_of(run);

        EXPECT_THAT(error, testing::HasSubstr("3 updates in a row"));
        EXPECT_THAT(error, testing::HasSubstr("--max-skips"));
        EXPECT_EQ(last_update, 4);
    }
}

TEST_F(TrainerTest, SkipsThatAreNotInARowAreNoError) {
    ToyRun run = run_of(9);
    run.max_skips = 3;
    harm(
        run, [](std::int64_t update) { return update % 3 != 0; }, make_loss_infinite);

    EXPECT_EQ(train(run).report.skipped, 6);
}

// Validations after each update, whose losses are `losses`.
void validate_with(ToyRun& run, const std::vector<double>& losses) {
    run.validate = true;
    run.valid_interval = 1;
    run.updates = std::ssize(losses);
    run.spoil = [losses, update = std::make_shared<std::int64_t>(0)](
                    const MicroBatch& batch, const ForwardContext& context, ForwardResult& result) {
        if (context.mode == Mode::train) {
            *update = context.update;
            return;
        }
        const double loss = losses[static_cast<std::size_t>(*update)];
        result.losses[0] = at::zeros_like(result.losses[0]);
        result.losses[1] =
            at::full_like(result.losses[1], loss * static_cast<double>(batch.samples));
    };
}

TEST_F(TrainerTest, AnOptimizerWithoutMemoryEndsTheRunAndSaysSo) {
    ToyRun run = run_of(2);
    run.optimizer = "full";

    try {
        train(run);
        FAIL() << "the update went on";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("out of memory in the optimizer"));
    }
}

TEST_F(TrainerTest, TheBestValidationIsThatOfTheLeastLoss) {
    ToyRun run = run_of(0);
    validate_with(run, {3, 1, 1, 2});

    const TrainerReport report = train(run).report;

    ASSERT_TRUE(report.best_valid);
    EXPECT_EQ(report.best_update, 2);
    EXPECT_DOUBLE_EQ(report.best_valid->loss(), 1);
    EXPECT_DOUBLE_EQ(report.last_valid->loss(), 2);
}

TEST_F(TrainerTest, AValidationThatIsNoNumberIsNeverTheBest) {
    ToyRun run = run_of(0);
    validate_with(run, {nan, 3, nan, 2, nan});

    const TrainerReport report = train(run).report;

    ASSERT_TRUE(report.best_valid);
    EXPECT_EQ(report.best_update, 4);
    EXPECT_DOUBLE_EQ(report.best_valid->loss(), 2);
    EXPECT_TRUE(std::isnan(report.last_valid->loss()));
}

TEST_F(TrainerTest, WithoutAFiniteValidationNoneIsTheBest) {
    ToyRun run = run_of(0);
    validate_with(run, {nan, nan});

    const TrainerReport report = train(run).report;

    EXPECT_FALSE(report.best_valid);
    EXPECT_TRUE(report.last_valid);
}

TEST_F(TrainerTest, ValidatesAtTheEndOfEachEpochAndOfTheRun) {
    ToyRun run = run_of(4);  // 31 samples in batches of 12: 3 updates an epoch
    validate_with(run, {9, 9, 1, 2});
    run.valid_interval = 0;

    const TrainerReport report = train(run).report;

    EXPECT_EQ(report.best_update, 3);
    EXPECT_EQ(report.epochs, 1);
    EXPECT_DOUBLE_EQ(report.last_valid->loss(), 2);
}

TEST_F(TrainerTest, TheBestValidationIsThatOfTheNamedTerm) {
    ToyRun run = run_of(0);
    validate_with(run, {3, 1, 2, nan});
    run.best_by = {"label", Direction::max};

    const TrainerReport report = train(run).report;

    EXPECT_EQ(report.best_update, 1);
    EXPECT_EQ(report.validations_since_best, 3);
    run.best_by = {"token", Direction::min};  // 0 each time
    EXPECT_EQ(train(run).report.best_update, 1);
}

TEST_F(TrainerTest, PatienceCountsByTheNamedTerm) {
    ToyRun run = run_of(0);
    validate_with(run, {3, 2, 1, 1, 1, 1});
    run.patience = 2;

    EXPECT_EQ(train(run).report.updates, 5);
    run.best_by = {"label", Direction::max};
    const TrainerReport report = train(run).report;

    EXPECT_EQ(report.updates, 3);
    EXPECT_EQ(report.stop, StopReason::patience);
}

TEST_F(TrainerTest, PatienceDoesNotCountByATermWithoutWeight) {
    ToyRun run = run_of(0);
    validate_with(run, {3, 2, 1, 1, 1, 1});
    run.patience = 1;
    run.weightless = {1};
    run.best_by = {"label", Direction::min};
    run.tells = true;

    testing::internal::CaptureStderr();
    const TrainerReport report = train(run).report;
    const std::string told = testing::internal::GetCapturedStderr();

    EXPECT_EQ(report.stop, StopReason::none);
    EXPECT_FALSE(report.best_valid);
    EXPECT_EQ(report.validations_since_best, 0);
    EXPECT_FALSE(report.last_valid->has_weight("label"));
    EXPECT_EQ(report.last_valid->loss(), report.last_valid->value_of("token"));
    if (world->rank() == 0) {
        EXPECT_THAT(told,
                    testing::HasSubstr("no sample of the validation data has a weight for label"));
    }
}

TEST_F(TrainerTest, StopsAfterSoManyUpdatesOfThisStart) {
    ToyRun run = run_of(5);
    run.stop_after = 2;

    const ToyResult result = train(run);

    EXPECT_EQ(result.report.updates, 2);
    EXPECT_EQ(result.report.stop, StopReason::stop_after);
    EXPECT_TRUE(result.parameters.equal(train(run_of(2)).parameters));
    run.progress.updates = 2;  // a second start
    EXPECT_EQ(train(run).report.updates, 4);
    run.stop_after = 3;
    EXPECT_EQ(train(run).report.stop, StopReason::none);  // it ends there anyway
}

// It doubles in the seventh update. The restart comes before.
TEST_F(TrainerTest, TheLossScaleGrowsAcrossARestart) {
    ToyRun whole = run_of(10);
    whole.loss_scale = LossScale{{.value = 65536, .good_updates = 1993}};
    const LossScale::State undisturbed = train(whole).report.loss_scale.value();
    ToyRun first = whole;
    first.stop_after = 4;

    const TrainerReport stopped = train(first).report;

    EXPECT_EQ(stopped.loss_scale.value().value, 65536);
    ToyRun second = whole;
    second.progress = stopped;
    second.loss_scale = LossScale{stopped.loss_scale.value()};
    const LossScale::State continued = train(second).report.loss_scale.value();
    EXPECT_EQ(continued.value, 131072);
    EXPECT_EQ(continued.good_updates, 3);
    EXPECT_EQ(undisturbed.value, continued.value);
    EXPECT_EQ(undisturbed.good_updates, continued.good_updates);
}

// After 4 updates of 3 an epoch, with the order begun anew.
TEST_F(TrainerTest, TheScheduleHasEpochsOfItsOwn) {
    ToyRun run = run_of(8);
    run.progress = {.updates = 4, .order_origin = 4, .schedule_origin = 2, .schedule_epochs = 1};
    using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;
    Places places;
    run.schedule = [&](std::int64_t update, std::int64_t epoch) {
        places.push_back({update, epoch});
        return 1e-3;
    };

    const TrainerReport report = train(run).report;

    EXPECT_EQ(places, (Places{{2, 1}, {3, 1}, {4, 1}, {5, 2}}));
    EXPECT_EQ(report.epochs, 1);
    EXPECT_EQ(report.schedule_epochs, 2);
}

// Units of a full batch by rank: all on the first.
std::vector<std::int64_t> first_alone(const HostComm& world) {
    std::vector<std::int64_t> units(static_cast<std::size_t>(world.size()));
    units[0] = 12;
    return units;
}

TEST_F(TrainerTest, CutsThatWereDecidedAndNotMadeAreForgotten) {
    ToyRun run = run_of(8);
    const std::vector<std::int64_t> equal = std::get<1>(*train(run).report.allocations.begin());
    const std::vector<std::int64_t> other = first_alone(*world);
    const bool differ = world->size() > 1;
    run.progress.updates = 4;
    run.progress.allocations = {{0, equal}, {2, other}, {5, equal}, {6, other}};
    run.progress.reallocations = 3;

    const TrainerReport report = train(run).report;

    AllocationsByUpdate made{{0, equal}, {2, other}};
    if (differ)
        made[4] = equal;
    EXPECT_EQ(report.allocations, made);
    EXPECT_EQ(report.reallocations, 1);
}

TEST_F(TrainerTest, CutsThatWereDecidedAreMadeByTheirReplay) {
    if (world->size() == 1)
        return;  // has no choice
    ToyRun run = run_of(8);
    const std::vector<std::int64_t> equal = std::get<1>(*train(run).report.allocations.begin());
    run.progress.updates = 4;
    run.progress.allocations = {{0, equal}, {2, first_alone(*world)}, {5, equal}};
    run.progress.reallocations = 2;
    run.replay = run.progress.allocations;

    const TrainerReport report = train(run).report;

    EXPECT_EQ(report.allocations, run.progress.allocations);
    EXPECT_EQ(report.reallocations, 2);
}

// The last rank's border lies a sample further than the others', as a processor of another make
// may round it.
TEST_F(TrainerTest, RanksThatCutABatchOtherwiseAreNamedBeforeItIsTrained) {
    if (world->size() == 1)
        return;
    ToyRun run = run_of(8);
    std::vector<std::int64_t> units = std::get<1>(*train(run).report.allocations.begin());
    run.replay = {{0, units}};
    if (world->rank() == world->size() - 1) {
        --units.front();
        ++units.back();
        run.replay[4] = units;
    }
    std::int64_t trained = 0;
    run.spoil = [&](const MicroBatch&, const ForwardContext& context, auto&) {
        trained = context.update + 1;
    };

    try {
        train(run);
        FAIL() << "the run went on";
    } catch (const AgreedError& error) {
        EXPECT_EQ(error.code(), ExitCode::internal);
        EXPECT_THAT(error.what(), testing::HasSubstr("the ranks cut batch 5 in unlike ways"));
        EXPECT_THAT(error.what(),
                    testing::HasSubstr("rank " + std::to_string(world->size() - 1) + " on "));
    }
    EXPECT_LE(trained, 4);
}

// The ranks' parameters after a run in which one of them went wrong.
std::vector<double> sums_by_rank(const HostComm& world, const ToyResult& result) {
    return world.all_gather(result.parameters.sum().item<double>());
}

TEST_F(TrainerTest, ReplicasThatDriftAreMadeOneAgain) {
    ToyRun run = run_of(6);
    run.corrupted_update = 2;
    run.check_interval = 2;

    run.drift = DriftPolicy::warn;
    const std::vector<double> warned = sums_by_rank(*world, train(run));
    run.drift = DriftPolicy::sync;
    const std::vector<double> synced = sums_by_rank(*world, train(run));

    EXPECT_EQ(warned.front() != warned.back(), world->size() > 1);
    EXPECT_EQ(synced.front(), synced.back());
}

TEST_F(TrainerTest, ReplicasThatDriftEndTheRunWhereAsked) {
    ToyRun run = run_of(6);
    run.corrupted_update = 2;
    run.check_interval = 2;
    run.drift = DriftPolicy::abort;
    if (world->size() == 1) {
        EXPECT_NO_THROW(train(run));
        return;
    }
    try {
        train(run);
        FAIL() << "went on";
    } catch (const AgreedError& error) {
        EXPECT_NE(
            std::string(error.what()).find("those of rank " + std::to_string(world->size() - 1)),
            std::string::npos)
            << error.what();
    }
}

// As a stage of a pipeline may be.
TEST_F(TrainerTest, AnyRanksParameterThatIsNotFiniteAtTheEndIsToldOf) {
    ToyRun run = run_of(3);
    run.corrupted_update = 2;  // the last
    run.corruption = nan;
    run.tells = true;

    testing::internal::CaptureStderr();
    train(run);
    const std::string told = testing::internal::GetCapturedStderr();

    EXPECT_EQ(told.find("of the model that is kept holds values that are not finite") !=
                  std::string::npos,
              world->rank() == 0)
        << told;
}

class TrainerCheckpointTest : public TrainerTest {
protected:
    TrainerCheckpointTest()
        : path_{*corpus + "/run"}, folder_{*world, path_, ExistingRun::overwrite} {
        folder_.begin(*world, "", {});
    }
    ~TrainerCheckpointTest() override {
        world->barrier();
        if (world->rank() == 0)
            std::filesystem::remove_all(path_);
        world->barrier();
    }

    ToyRun saving_run(std::int64_t updates, RunControl& control) const {
        ToyRun run = run_of(updates);
        run.folder = &folder_;
        run.saves = true;
        run.control = &control;
        return run;
    }
    // The updates of its checkpoints, the first one first.
    std::vector<std::int64_t> saved_by(const ToyRun& run) const {
        train(run);
        world->barrier();  // rank 0 has given the last one its name
        std::vector<std::int64_t> updates;
        for (const auto& entry : folder_.checkpoints().list())
            updates.push_back(entry.update);
        std::reverse(updates.begin(), updates.end());
        return updates;
    }

    std::string path_;
    RunFolder folder_;
};

using Updates = std::vector<std::int64_t>;

// The clock is due at each update; what it asks while a checkpoint is taken, that one answers.
TEST_F(TrainerCheckpointTest, TheClockIsAnsweredOnce) {
    RunControl control({.watches_clock = world->rank() == 0});
    ToyRun run = saving_run(7, control);
    run.pace.every_s = 1e-15;

    EXPECT_EQ(saved_by(run), (Updates{1, 3, 5, 7}));
}

TEST_F(TrainerCheckpointTest, ASignalThatRanksNoticeInNeighbouringUpdatesIsAnsweredOnce) {
    signal_inbox::open();
    signal_inbox::choose({}, {SIGUSR2});
    RunControl control({});
    control.saved(true);  // forgets signals of other tests
    ToyRun run = saving_run(8, control);
    run.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult&) {
        const bool first = world->rank() == 0 && context.update == 2;
        const bool last = world->rank() == world->size() - 1 && context.update == 3;
        if (first || last)
            std::raise(SIGUSR2);
    };

    const Updates saved = saved_by(run);

    EXPECT_EQ(saved, (Updates{4, 8}));
    signal_inbox::release();
}

// Each rank later than the one before, with updates between.
TEST_F(TrainerCheckpointTest, ASignalThatReachesRanksManyUpdatesApartIsAnsweredOnce) {
    signal_inbox::open();
    signal_inbox::choose({}, {SIGUSR2});
    RunControl control({.same_request_s = 600});
    control.saved(true);  // forgets signals of other tests
    ToyRun run = saving_run(24, control);
    run.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult&) {
        if (context.update == 2 + 4 * world->rank())
            std::raise(SIGUSR2);
    };

    const Updates saved = saved_by(run);

    EXPECT_EQ(saved, (Updates{4, 24}));
    signal_inbox::release();
}

TEST_F(TrainerCheckpointTest, WhatTheFolderHoldsIsNotSavedAgain) {
    if (world->rank() == 0)
        write_atomically(folder_.stop_file(), "");
    world->barrier();
    const auto saved_after_3 = [&](std::int64_t held_update) {
        RunControl control({.stop_file = world->rank() == 0 ? folder_.stop_file() : ""});
        ToyRun run = saving_run(8, control);
        run.progress.updates = 3;
        run.held_update = held_update;
        return saved_by(run);
    };

    EXPECT_EQ(saved_after_3(3), Updates{});
    EXPECT_EQ(saved_after_3(-1), Updates{3});  // --restore-file into a new folder
}

TEST_F(TrainerTest, TheBestModelIsKept) {
    const std::string path = *corpus + "/run";
    RunFolder folder(*world, path, ExistingRun::overwrite);
    folder.begin(*world, "", {});
    ToyRun run = run_of(0);
    validate_with(run, {3, 1, 2});
    run.folder = &folder;

    train(run);
    world->barrier();  // rank 0 has written

    ToyModel best(0);
    best.to(at::kDouble);
    load_model(folder.best_model(), best);
    const FlatParameters parameters(best, [](const std::string&) { return true; });
    EXPECT_TRUE(parameters.values().equal(train(run_of(2)).parameters));
    world->barrier();  // all have read
    if (world->rank() == 0)
        std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace hetseq::test
