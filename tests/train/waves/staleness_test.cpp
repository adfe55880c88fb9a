// docs/virtual-workers.md, "Staleness": the update is that of a serial loop with late gradients.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_folder.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"
#include "train/waves/late_reference.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

class StalenessTest : public testing::Test {
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
    ~StalenessTest() override {
        world->barrier();
        if (world->rank() == 0)
            fs::remove_all(base_);
        world->barrier();
    }

    static ToyRun run_of(std::int64_t updates, std::int64_t staleness) {
        ToyRun run{.data = *corpus,
                   .capacities = {5},
                   .updates = updates,
                   .dropout = 0.1,
                   .optimizer = "adamw",
                   .lr = 1e-2};
        run.staleness = staleness;
        return run;
    }
    // Shares of 3, 1, 0 and 2 samples a micro-batch.
    static ToyRun on_all_ranks(ToyRun run) {
        const std::vector<std::int64_t> all{3, 1, 0, 2};
        run.capacities = {all.begin(), all.begin() + world->size()};
        return run;
    }
    // Cuts of full batches that change before updates 2 and 4.
    static AllocationsByUpdate changing_cuts() {
        std::vector<std::int64_t> units(static_cast<std::size_t>(world->size()), 0);
        units[0] = 12;
        std::vector<std::int64_t> others = units;
        others.front() -= 4;
        others[world->size() > 1 ? 1 : 0] += 4;
        return {{0, units}, {2, others}, {4, units}};
    }
    static ToyResult train(const ToyRun& run) { return train_toy(environment(), *world, run); }
    static ToyResult train_alone(const ToyRun& run) {
        return train_toy(environment(), HostComm::serial(), run);
    }

    // What `run` on all ranks leaves in a folder of this name.
    struct Saved {
        ToyResult result;
        fs::path folder;  // the checkpoint of its last update
    };
    Saved saved(ToyRun run, const std::string& name) const {
        return saved_by(*world, std::move(run), base_ / name);
    }
    static Saved saved_by(const HostComm& ranks, ToyRun run, const fs::path& path) {
        RunFolder folder(ranks, path, ExistingRun::overwrite);
        folder.begin(ranks, "", {});
        run.folder = &folder;
        run.saves = true;
        ToyResult result = train_toy(environment(), ranks, run);
        ranks.barrier();
        const std::int64_t updates = result.report.updates;
        return {std::move(result), folder.checkpoints().of_update(updates)};
    }
    void expect_same_files(const fs::path& a, const fs::path& b) const {
        EXPECT_EQ(names_in(a), names_in(b));
        for (const std::string& name : names_in(a))
            EXPECT_TRUE(text_of(a / name) == text_of(b / name)) << a / name;
        world->barrier();  // they may be overwritten now
    }

    static double difference(const at::Tensor& a, const at::Tensor& b) {
        return ((a - b).abs() / a.abs().clamp_min(1)).max().item<double>();
    }

    static HostComm* world;
    static std::string* corpus;
    fs::path base_ = world->broadcast(
        (fs::temp_directory_path() / ("hetseq_staleness_" + std::to_string(::getpid()))).string(),
        0);
};

HostComm* StalenessTest::world = nullptr;
std::string* StalenessTest::corpus = nullptr;

// Bit for bit.
TEST_F(StalenessTest, OneRankGivesWhatTheSerialLoopGives) {
    for (const char* optimizer : {"momentum", "adamw", "lamb", "adadelta"})
        for (const double clip_norm : {0.0, 0.5})
            for (const std::int64_t staleness : {0, 1, 2, 4}) {
                SCOPED_TRACE(std::string(optimizer) + " " + std::to_string(clip_norm) + " " +
                             std::to_string(staleness));
                ToyRun run = run_of(8, staleness);
                run.optimizer = optimizer;
                run.clip_norm = clip_norm;

                const ToyResult result = train_alone(run);

                EXPECT_EQ(result.report.updates, 8);
                EXPECT_TRUE(result.parameters.equal(train_late(run, late_by(staleness))));
            }
}

TEST_F(StalenessTest, LateGradientsGiveAnotherResult) {
    EXPECT_FALSE(train_alone(run_of(8, 1)).parameters.equal(train_alone(run_of(8, 0)).parameters));
    EXPECT_FALSE(train_alone(run_of(8, 2)).parameters.equal(train_alone(run_of(8, 1)).parameters));
}

TEST_F(StalenessTest, UnlikeSharesGiveWhatOneRankGives) {
    for (const std::int64_t staleness : {1, 2, 4}) {
        ToyRun run = run_of(10, staleness);
        run.clip_norm = 0.5;

        const at::Tensor together = train(on_all_ranks(run)).parameters;

        EXPECT_LE(difference(train_late(run, late_by(staleness)), together), 1e-12) << staleness;
    }
}

TEST_F(StalenessTest, MoreThanThereAreUpdatesIsAsManyAsThereAre) {
    const ToyRun run = run_of(3, 16);

    const ToyResult result = train_alone(run);

    EXPECT_EQ(result.report.updates, 3);
    EXPECT_TRUE(result.parameters.equal(train_late(run, late_by(3))));
}

TEST_F(StalenessTest, TheSpeedsOfRanksChangeNoBit) {
    for (const std::int64_t staleness : {1, 3}) {
        ToyRun run = on_all_ranks(run_of(12, staleness));
        const at::Tensor undisturbed = train(run).parameters;
        for (const unsigned seed : {1U, 2U}) {
            std::mt19937 random(seed + static_cast<unsigned>(world->rank()));
            run.spoil = [&](const MicroBatch&, const ForwardContext&, ForwardResult&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(random() % 8));
            };

            EXPECT_TRUE(train(run).parameters.equal(undisturbed));
        }
    }
}

// Sums, state and records: at each place of a short run.
TEST_F(StalenessTest, ARunGoesOnFromAnyOfItsCheckpoints) {
    for (const std::int64_t staleness : {1, 2}) {
        ToyRun run = on_all_ranks(run_of(6, staleness));
        run.clip_norm = 0.5;
        run.save_interval = 1;
        run.replay = changing_cuts();
        const Saved whole = saved(run, "whole" + std::to_string(staleness));
        for (std::int64_t updates = 1; updates < 6; ++updates) {
            SCOPED_TRACE(std::to_string(staleness) + " " + std::to_string(updates));
            ToyRun first = run;
            first.stop_after = updates;
            ToyRun second = run;

            const Saved stopped = saved(first, "first");
            second.from = stopped.folder;
            const Saved continued = saved(second, "second");

            EXPECT_EQ(stopped.result.report.updates, updates);
            EXPECT_EQ(stopped.result.report.stop, StopReason::stop_after);
            const fs::path in_passing = whole.folder.parent_path() / stopped.folder.filename();
            expect_same_files(stopped.folder, in_passing);
            EXPECT_TRUE(continued.result.parameters.equal(whole.result.parameters));
            expect_same_files(continued.folder, whole.folder);
        }
    }
}

TEST_F(StalenessTest, ACheckpointHoldsAsManySumsAsArePending) {
    ToyRun run = on_all_ranks(run_of(5, 2));
    run.save_interval = 1;

    const fs::path checkpoints = saved(run, "run").folder.parent_path();

    for (std::int64_t updates = 1; updates <= 5; ++updates) {
        SCOPED_TRACE(updates);
        const fs::path folder = CheckpointFolder(checkpoints).of_update(updates);
        std::int64_t files = 0;
        for (const std::string& name : names_in(folder))
            files += name.starts_with("pending-") ? 1 : 0;
        const std::vector<PendingUpdate> told = read_training_state(folder).progress.pending;
        EXPECT_EQ(files, std::min<std::int64_t>(2, 5 - updates));
        EXPECT_EQ(std::ssize(told), files);
        for (const PendingUpdate& update : told) {
            EXPECT_EQ(std::ssize(update.allocation), world->size());
            EXPECT_EQ(std::accumulate(
                          update.allocation.begin(), update.allocation.end(), std::int64_t{0}),
                      update.samples);
            EXPECT_EQ(update.losses.size(), 2U);
        }
    }
}

// As those of batch normalisation.
TEST_F(StalenessTest, SumsBesideGradientsComeWithTheirUpdate) {
    const auto taken_in = [](ToyRun run) {
        std::vector<double> taken;
        run.take_ids = [&](double ids) { taken.push_back(ids); };
        train(run);
        return taken;
    };
    const std::vector<double> expected = taken_in(on_all_ranks(run_of(7, 0)));
    ASSERT_EQ(expected.size(), 7U);
    ASSERT_NE(expected[3], expected[4]);

    for (const std::int64_t staleness : {1, 2})
        EXPECT_EQ(taken_in(on_all_ranks(run_of(7, staleness))), expected);
}

TEST_F(StalenessTest, SumsBesideGradientsGoOnFromACheckpoint) {
    std::vector<double> undisturbed, taken;
    ToyRun run = on_all_ranks(run_of(7, 0));
    run.take_ids = [&](double ids) { undisturbed.push_back(ids); };
    train(run);
    run.staleness = 2;
    run.take_ids = [&](double ids) { taken.push_back(ids); };
    ToyRun first = run, second = run;
    first.stop_after = 3;

    second.from = saved(first, "first").folder;
    train(second);

    EXPECT_EQ(taken, undisturbed);
}

TEST_F(StalenessTest, OneRankGoesOnWhereAllStopped) {
    for (const std::int64_t staleness : {1, 2}) {
        const ToyRun run = run_of(8, staleness);
        ToyRun first = on_all_ranks(run);
        first.stop_after = 4;
        ToyRun second = run;

        second.from = saved(first, "first").folder;
        const ToyResult result = train_alone(second);

        EXPECT_EQ(result.report.updates, 8);
        EXPECT_LE(difference(train_late(run, late_by(staleness)), result.parameters), 1e-12);
    }
}

// Those pending stay as they were computed; from the next one on the new staleness holds, counted
// from the checkpoint.
TEST_F(StalenessTest, ARunGoesOnWithAnotherStaleness) {
    for (const auto& [before, after] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {3, 1}, {4, 0}, {2, 0}, {1, 3}, {2, 4}, {0, 2}}) {
        SCOPED_TRACE(std::to_string(before) + " to " + std::to_string(after));
        ToyRun first = run_of(12, before);
        first.clip_norm = 0.5;
        ToyRun second = first;
        second.staleness = after;
        first.stop_after = 5;

        Saved stopped;
        if (world->rank() == 0)
            stopped = saved_by(HostComm::serial(), first, base_ / "first");
        second.from = world->broadcast(stopped.folder.string(), 0);
        const ToyResult result = train_alone(second);
        world->barrier();

        const std::int64_t pending_end = 5 + before;
        EXPECT_TRUE(result.parameters.equal(
            train_late(second, [before = before, after = after, pending_end](std::int64_t update) {
                return update < pending_end ? std::max<std::int64_t>(0, update - before)
                                            : std::max<std::int64_t>(5, update - after);
            })));
    }
}

// What is pending is whole on every rank, though the optimizer's state is not.
TEST_F(StalenessTest, WhatIsPendingIsAppliedToACutState) {
    for (const std::int64_t before : {1, 3}) {
        ToyRun first = on_all_ranks(run_of(12, before));
        ToyRun second = first;
        first.stop_after = 5;
        second.staleness = 0;
        second.from = saved(first, "first").folder;
        ToyRun cut = second;
        cut.shards = {2, 1, 1, 3};
        cut.shards.resize(static_cast<std::size_t>(world->size()));

        EXPECT_LE(difference(train(second).parameters, train(cut).parameters), 1e-12) << before;
    }
}

// A checkpoint that is due while more is pending than may be waits until that is applied.
TEST_F(StalenessTest, ASmallerStalenessGoesOnToTheSameBytesAfterItsFirstCheckpoint) {
    ToyRun first = on_all_ranks(run_of(12, 3));
    ToyRun second = first;
    first.stop_after = 4;
    second.staleness = 1;
    second.save_interval = 1;
    second.from = saved(first, "first").folder;
    ToyRun third = second;

    const Saved whole = saved(second, "second");
    const CheckpointFolder checkpoints(whole.folder.parent_path());
    const std::int64_t earliest = checkpoints.list().back().update;
    third.from = checkpoints.of_update(earliest);
    const Saved continued = saved(third, "third");

    EXPECT_EQ(earliest, 6);  // with 7 updates computed
    expect_same_files(continued.folder, whole.folder);
}

TEST_F(StalenessTest, AnUpdateWithALossThatIsNotFiniteIsLeftOut) {
    for (const std::int64_t staleness : {1, 2}) {
        ToyRun run = on_all_ranks(run_of(7, staleness));
        run.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
            if (world->rank() == world->size() - 1 && context.update == 3)
                result.losses[1] = result.losses[1] / 0;
        };
        if (run.capacities.back() == 0)
            run.capacities.back() = 1;
        testing::internal::CaptureStderr();

        const ToyResult result = train(run);

        const std::string log = testing::internal::GetCapturedStderr();
        const bool is_spoilt = world->rank() == world->size() - 1;
        EXPECT_EQ(log.find("not finite in the micro-batch with samples") != log.npos, is_spoilt);
        EXPECT_EQ(result.report.skipped, 1);
        EXPECT_EQ(result.report.updates, 7);
        EXPECT_LE(difference(train_late(run_of(7, staleness), late_by(staleness), {3}),
                             result.parameters),
                  1e-12);
    }
}

TEST_F(StalenessTest, ASkippedUpdateThatACheckpointHoldsIsLeftOut) {
    ToyRun first = run_of(7, 2);
    first.stop_after = 3;
    first.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (context.update == 4)
            result.losses[1] = result.losses[1] / 0;
    };
    ToyRun second = run_of(7, 2);

    Saved stopped;
    if (world->rank() == 0)
        stopped = saved_by(HostComm::serial(), first, base_ / "first");
    second.from = world->broadcast(stopped.folder.string(), 0);
    const ToyResult result = train_alone(second);
    world->barrier();

    EXPECT_EQ(result.report.skipped, 1);
    EXPECT_TRUE(result.parameters.equal(train_late(second, late_by(2), {4})));
}

// Those under way had it, too: it is halved once.
TEST_F(StalenessTest, AGradientTooLargeForFp16IsLeftOutAndHalvesTheScale) {
    ToyRun run = on_all_ranks(run_of(8, 2));
    run.loss_scale = LossScale{LossScale::State{}};
    run.max_skips = 1;
    run.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (world->rank() == 0 && (context.update == 3 || context.update == 4) &&
            result.losses[0].requires_grad())
            result.losses[0].register_hook([](const at::Tensor& gradient) { return gradient / 0; });
    };

    const ToyResult result = train(run);

    EXPECT_EQ(result.report.skipped, 2);
    EXPECT_EQ(result.report.skips_in_a_row, 0);
    EXPECT_EQ(result.report.loss_scale.value().value, 32768);
    EXPECT_EQ(result.report.loss_scale.value().overflows, 2);
    EXPECT_LE(difference(train_late(run_of(8, 2), late_by(2), {3, 4}), result.parameters), 1e-12);
}

// The others compute each of their micro-batches once.
TEST_F(StalenessTest, ARankWithoutMemoryGoesOnInLessOfIt) {
    ToyRun run = on_all_ranks(run_of(6, 1));
    const bool is_poor = world->rank() == 0;
    std::int64_t forwards = 0, failures = 0;
    const auto count = [&](const MicroBatch& batch, const ForwardContext& context, auto&) {
        ++forwards;
        if (!is_poor || context.update < 2 || batch.samples < 3)
            return;
        ++failures;
        throw std::bad_alloc();
    };
    run.spoil = [&](const MicroBatch&, const ForwardContext&, auto&) { ++forwards; };
    train(run);
    const std::int64_t undisturbed = std::exchange(forwards, 0);
    run.spoil = count;

    const ToyResult result = train(run);

    EXPECT_EQ(failures, is_poor ? 1 : 0);
    EXPECT_EQ(forwards == undisturbed, !is_poor);
    EXPECT_LE(difference(train_late(run_of(6, 1), late_by(1)), result.parameters), 1e-12);
}

TEST_F(StalenessTest, ValidationIsOfTheParametersThatTheUpdateMade) {
    ToyRun first = on_all_ranks(run_of(9, 2));
    first.validate = true;
    first.valid_interval = 4;
    ToyRun second = on_all_ranks(run_of(4, 2));
    second.validate = true;
    first.stop_after = 4;

    const TrainerReport stopped = train(first).report;
    const TrainerReport ended = train(second).report;

    EXPECT_EQ(stopped.best_update, 4);
    EXPECT_EQ(stopped.last_valid.value().loss(), ended.last_valid.value().loss());
}

TEST_F(StalenessTest, PatienceStopsWithACheckpointThatGoesOn) {
    ToyRun run = on_all_ranks(run_of(9, 2));
    run.validate = true;
    run.valid_interval = 1;
    run.best_by = {"label", Direction::min};
    run.patience = 2;
    run.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (context.mode == Mode::evaluate)
            result.losses[1] = at::ones_like(result.losses[1]);
    };

    const Saved stopped = saved(run, "stopped");

    EXPECT_EQ(stopped.result.report.stop, StopReason::patience);
    EXPECT_EQ(stopped.result.report.updates, 3);
    ToyRun second = on_all_ranks(run_of(9, 2));
    second.from = stopped.folder;
    EXPECT_TRUE(train(second).parameters.equal(train(on_all_ranks(run_of(9, 2))).parameters));
}

}  // namespace
}  // namespace hetseq::test
