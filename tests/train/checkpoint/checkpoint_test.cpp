#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/checkpoint/checkpoint_reader.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"
#include "hetseq/train/replica_sync.hpp"

#include "model/mixed_model.hpp"
#include "train/checkpoint/checkpoint_fixture.hpp"
#include "train/toy_model.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::int64_t small_files = 1000;  // bytes, so that there are several

// A model with an optimizer that has taken a step.
struct Replica {
    explicit Replica(std::uint64_t seed, at::ScalarType dtype = at::kFloat) {
        initialise_parameters(model, seed);
        model.to(dtype);
        parameters =
            std::make_unique<FlatParameters>(model, [](const std::string&) { return true; });
        optimizer = make_adam(*parameters, {});
        for (const auto& parameter : parameters->parameters())
            parameters->gradients()
                .narrow(0, parameter.offset, parameter.numel)
                .fill_(0.1 * static_cast<double>(seed));
        optimizer->step(*parameters, 0.01);
    }

    std::vector<CheckpointFile> files() const {
        return checkpoint_files(model, *parameters, *optimizer, small_files);
    }
    bool equals(const Replica& other) const {
        bool equal = parameters->values().equal(other.parameters->values());
        for (const auto& [name, tensor] : optimizer->state())
            equal = equal && tensor.equal(other.optimizer->state().at(name));
        return equal;
    }

    ToyModel model{0};
    std::unique_ptr<FlatParameters> parameters;
    std::unique_ptr<Optimizer> optimizer;
};

constexpr CheckpointWriter::Options threaded{.threads_may_call_mpi = true};

class CheckpointTest : public CheckpointFixture {
protected:
    fs::path save(const Replica& replica, std::int64_t update) const {
        CheckpointWriter writer(world_, checkpoints_, replica.files(), threaded);
        writer.start(state_of(update));
        writer.finish();
        world_.barrier();
        return checkpoints_.of_update(update);
    }
    void load(const fs::path& folder, const Replica& replica) const {
        load_checkpoint(world_, *communicator_, folder, replica.files());
    }
    // The error that all ranks throw, once `damage` was done to a whole checkpoint.
    std::string problem_after(const std::function<void(const fs::path&)>& damage,
                              OptimizerFiles optimizer = OptimizerFiles::read) const {
        const fs::path folder = save(Replica(1), 5);
        on_rank_0([&] { damage(folder); });
        try {
            verified_state(world_, folder, optimizer);
        } catch (const AgreedError& error) {
            return error.what();
        }
        return "nothing";
    }
    static fs::path optimizer_file(const fs::path& folder) {
        for (const auto& entry : fs::directory_iterator(folder))
            if (entry.path().filename().string().rfind("optimizer-00002", 0) == 0)
                return entry.path();
        throw InternalError("no second file of the optimizer");
    }
    static void flip_byte(const fs::path& file) {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(-3, std::ios::end);
        const char byte = static_cast<char>(stream.get() ^ 1);
        stream.seekp(-3, std::ios::end);
        stream.put(byte);
    }
};

TEST(CheckpointOwnersTest, TheLargestGoToWhoHasTheLeast) {
    using testing::ElementsAre;
    const std::int64_t of_bert[] = {420, 210, 210, 210, 210};
    const std::int64_t alike[] = {5, 5, 5, 5, 5};
    const std::int64_t state_is_larger[] = {100, 200};

    EXPECT_THAT(checkpoint_owners(of_bert, 2), ElementsAre(0, 1, 1, 0, 1));
    EXPECT_THAT(checkpoint_owners(of_bert, 1), ElementsAre(0, 0, 0, 0, 0));
    EXPECT_THAT(checkpoint_owners(alike, 3), ElementsAre(0, 1, 2, 0, 1));
    EXPECT_THAT(checkpoint_owners(state_is_larger, 2), ElementsAre(1, 0));
}

TEST_F(CheckpointTest, RestoresParametersOptimizerAndState) {
    const Replica saved(1);
    const fs::path folder = save(saved, 5);
    const Replica other(2);
    ASSERT_FALSE(other.equals(saved));

    const TrainingState state = verified_state(world_, folder);
    load(folder, other);

    EXPECT_TRUE(other.equals(saved));
    EXPECT_EQ(state.progress.updates, 5);
    EXPECT_EQ(state.run.options.at("task"), "toy");
}

TEST_F(CheckpointTest, RestoresWhatIsNotTrained) {
    MixedModel saved(4), other;
    FlatParameters saved_parameters(saved, [](const std::string&) { return true; });
    FlatParameters other_parameters(other, [](const std::string&) { return true; });
    const auto saved_optimizer = make_sgd(saved_parameters, {});
    const auto other_optimizer = make_sgd(other_parameters, {});
    CheckpointWriter writer(world_,
                            checkpoints_,
                            checkpoint_files(saved, saved_parameters, *saved_optimizer),
                            threaded);

    writer.start(state_of(1));
    writer.finish();
    world_.barrier();
    load_checkpoint(world_,
                    *communicator_,
                    checkpoints_.of_update(1),
                    checkpoint_files(other, other_parameters, *other_optimizer));

    EXPECT_TRUE(stored_alike(saved, other));
}

// An optimizer with tensors of its own for a parameter.
class OwnTensors final : public Optimizer {
public:
    explicit OwnTensors(double value)
        : order{at::full({3}, value).to(at::kLong)}, rate{at::full({}, value, at::kDouble)} {}
    void step(FlatParameters&, double) override {}
    std::map<std::string, at::Tensor> state() const override {
        return {{"order/hidden.weight", order}, {"rate/hidden.weight", rate}};
    }
    void restored() override { seen = rate.item<double>(); }

    at::Tensor order, rate;
    double seen = 0;
};

TEST_F(CheckpointTest, AnOptimizerMayHaveTensorsOfItsOwn) {
    Replica saved(1), other(2);
    saved.optimizer = std::make_unique<OwnTensors>(7);
    other.optimizer = std::make_unique<OwnTensors>(0);
    const fs::path folder = save(saved, 5);

    load(folder, other);

    EXPECT_TRUE(other.equals(saved));
}

TEST_F(CheckpointTest, ACopiedReplicaIsRankZerosAndItsOptimizerHearsOfIt) {
    Replica own(1);
    OwnTensors optimizer(10 + world_.rank());

    copy_replica(*communicator_, *own.parameters, {}, optimizer);

    EXPECT_TRUE(optimizer.order.equal(at::full({3}, 10).to(at::kLong)));
    EXPECT_EQ(optimizer.rate.item<double>(), 10);
    EXPECT_EQ(optimizer.seen, 10);
}

TEST_F(CheckpointTest, HoldsWhatWasThereWhenItStarted) {
    const Replica saved(1);
    const Replica moving(1);
    CheckpointWriter writer(world_, checkpoints_, moving.files(), threaded);
    writer.start(state_of(5));
    writer.wait_for_copy();
    moving.parameters->values().fill_(7);
    writer.finish();
    world_.barrier();

    const Replica other(2);
    load(checkpoints_.of_update(5), other);
    EXPECT_TRUE(other.equals(saved));
}

// Nobody looks after it, as in a long update.
TEST_F(CheckpointTest, IsCompleteAsSoonAsAllRanksHaveWritten) {
    const Replica replica(1);
    CheckpointWriter writer(world_, checkpoints_, replica.files(), threaded);

    writer.start(state_of(5));
    for (int looks = 0; looks < 6000 && !fs::exists(checkpoints_.of_update(5)); ++looks)
        std::this_thread::sleep_for(std::chrono::milliseconds{10});

    EXPECT_NO_THROW(verified_state(world_, checkpoints_.of_update(5)));
    EXPECT_TRUE(writer.is_under_way());
    writer.finish();
    EXPECT_FALSE(writer.is_under_way());
}

TEST_F(CheckpointTest, WhereThreadsMayNotCallMpiItIsCompleteWhenTheStartReturns) {
    const Replica replica(1);
    CheckpointWriter writer(world_, checkpoints_, replica.files(), {});

    writer.start(state_of(5));
    world_.barrier();
    if (world_.size() > 1) {
        EXPECT_NO_THROW(verified_state(world_, checkpoints_.of_update(5)));
    }
    writer.finish();
    world_.barrier();
    EXPECT_NO_THROW(verified_state(world_, checkpoints_.of_update(5)));
}

TEST_F(CheckpointTest, EqualStatesHaveEqualBytesWhateverTheRanks) {
    const Replica saved(1);
    const fs::path together = save(saved, 5);
    on_rank_0([&] {
        CheckpointWriter alone(
            HostComm::serial(), CheckpointFolder(base_ / "alone"), saved.files(), {});
        alone.start(state_of(5));
        alone.finish();
    });

    const auto files = read_manifest(together).files;
    EXPECT_EQ(files, read_manifest(base_ / "alone/update-00000005").files);
    EXPECT_GT(files.size(), 3U);
}

TEST_F(CheckpointTest, AFollowingOneWaitsAndOldOnesGo) {
    const Replica replica(1);
    CheckpointWriter writer(
        world_, checkpoints_, replica.files(), {.keep_last = 2, .threads_may_call_mpi = true});
    for (std::int64_t update = 1; update <= 4; ++update) {
        writer.start(state_of(update));
        writer.poll();
    }
    writer.finish();
    world_.barrier();
    EXPECT_EQ(checkpoints_.list().size(), 2U);
    EXPECT_EQ(writer.last_update(), 4);
    EXPECT_GT(writer.seconds(), 0);
}

TEST_F(CheckpointTest, EveryDamageIsNamedOnAllRanks) {
    EXPECT_THAT(problem_after([&](const fs::path& f) { flip_byte(f / "model.safetensors"); }),
                HasSubstr("model.safetensors is damaged"));
    EXPECT_THAT(problem_after([&](const fs::path& f) { flip_byte(optimizer_file(f)); }),
                HasSubstr("optimizer-00002"));
    EXPECT_THAT(problem_after([&](const fs::path& f) { fs::resize_file(f / "state.json", 9); }),
                HasSubstr("state.json has 9 bytes"));
    EXPECT_THAT(problem_after([&](const fs::path& f) { fs::remove(optimizer_file(f)); }),
                HasSubstr("there is no file"));
    EXPECT_THAT(problem_after([&](const fs::path& f) { fs::remove(f / "MANIFEST.json"); }),
                HasSubstr("not complete"));
    EXPECT_THAT(problem_after([&](const fs::path& f) { fs::resize_file(f / "MANIFEST.json", 20); }),
                HasSubstr("is not a manifest"));
    EXPECT_THAT(problem_after([](const fs::path&) {}), "nothing");
}

TEST_F(CheckpointTest, DamageOfAnOptimizerThatIsLeftOutDoesNotMatter) {
    const auto left_out = OptimizerFiles::left_out;

    EXPECT_EQ(problem_after([](const fs::path& f) { flip_byte(optimizer_file(f)); }, left_out),
              "nothing");
    EXPECT_EQ(problem_after([](const fs::path& f) { fs::remove(optimizer_file(f)); }, left_out),
              "nothing");
    EXPECT_THAT(
        problem_after([](const fs::path& f) { flip_byte(f / "model.safetensors"); }, left_out),
        HasSubstr("model.safetensors is damaged"));
    EXPECT_THAT(
        problem_after([](const fs::path& f) { fs::resize_file(f / "state.json", 9); }, left_out),
        HasSubstr("state.json has 9 bytes"));
}

TEST_F(CheckpointTest, OneThatDoesNotFitIsRefusedAndChangesNothing) {
    const fs::path folder = save(Replica(1), 5);
    Replica other(2, at::kDouble);
    const Replica before(2, at::kDouble);
    std::string text;
    try {
        load(folder, other);
    } catch (const AgreedError& error) {
        text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("its type is F32, this run's is F64"));
    EXPECT_TRUE(other.equals(before));

    Replica sgd(2);
    sgd.optimizer = make_sgd(*sgd.parameters, {.momentum = 0.9});
    EXPECT_THROW(load(folder, sgd), AgreedError);
}

TEST_F(CheckpointTest, ATensorOfAnotherShapeIsNamedWithBoth) {
    const fs::path folder = save(Replica(1), 5);
    std::vector<CheckpointFile> files = Replica(1).files();
    files[0].tensors[0] = whole_tensor({files[0].tensors[0].name, at::zeros({3, 5})});
    std::string text;
    try {
        load_checkpoint(world_, *communicator_, folder, files);
    } catch (const AgreedError& error) {
        text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("'" + files[0].tensors[0].name + "'"));
    EXPECT_THAT(text, HasSubstr("this run's is (3, 5)"));
}

TEST_F(CheckpointTest, OneThatCannotBeWrittenLeavesTheOnesBeforeAndIsSaidInTheEnd) {
    const Replica replica(1);
    const fs::path before = save(replica, 5);
    CheckpointWriter writer(
        world_, checkpoints_, replica.files(), {.most_failures = 2, .threads_may_call_mpi = true});
    // Its folder's name is taken by a file.
    on_rank_0([&] { write_atomically(checkpoints_.path() / ".unfinished-update-00000006", ""); });
    writer.start(state_of(6));
    EXPECT_THROW(writer.finish(), AgreedError);
    writer.poll();
    world_.barrier();
    EXPECT_NO_THROW(verified_state(world_, before));

    on_rank_0([&] { write_atomically(checkpoints_.path() / ".unfinished-update-00000007", ""); });
    writer.start(state_of(7));
    EXPECT_THROW(writer.finish(), AgreedError);
    EXPECT_THROW(writer.poll(), IoError);
    world_.barrier();
}

// A tensor whose shape changes behind the writer's back cannot be copied.
TEST_F(CheckpointTest, OneThatCannotBeCopiedKeepsNobodyWaiting) {
    const Replica replica(1);
    const fs::path before = save(replica, 5);
    std::vector<CheckpointFile> files = replica.files();
    at::Tensor moving = at::ones({4, 2}).t();  // copied element by element
    files[0].tensors[0] = whole_tensor({files[0].tensors[0].name, moving});  // of rank 0's file
    CheckpointWriter writer(world_, checkpoints_, files, threaded);
    moving.as_strided_({3, 2}, {1, 3});

    writer.start(state_of(6));
    writer.wait_for_copy();
    EXPECT_THROW(writer.finish(), AgreedError);
    EXPECT_FALSE(fs::exists(checkpoints_.of_update(6)));
    moving.as_strided_({2, 4}, {1, 2});
    writer.start(state_of(7));
    writer.wait_for_copy();
    EXPECT_NO_THROW(writer.finish());

    world_.barrier();
    EXPECT_NO_THROW(verified_state(world_, before));
    EXPECT_NO_THROW(verified_state(world_, checkpoints_.of_update(7)));
}

TEST_F(CheckpointTest, ReplicasAreComparedAndMadeOne) {
    const Replica own(1 + static_cast<std::uint64_t>(world_.rank() == world_.size() - 1));
    const std::vector<std::string> like(static_cast<std::size_t>(world_.size()), "cpu");
    std::vector<std::string> unlike = like;
    unlike.back() = "gpu";
    const bool differ = world_.size() > 1;

    const auto compare = [&](const std::vector<std::string>& devices) {
        return compare_replicas(world_, *communicator_, *own.parameters, {}, devices);
    };
    const ReplicaDrift drift = compare(like);
    EXPECT_EQ(drift.odd_ranks, differ ? std::vector<int>{world_.size() - 1} : std::vector<int>{});
    EXPECT_EQ(drift.is_within(1e9), !differ);
    const ReplicaDrift tolerated = compare(unlike);
    EXPECT_TRUE(tolerated.is_within(1e9));
    EXPECT_EQ(tolerated.is_within(1e-9), !differ);

    copy_replica(*communicator_, *own.parameters, {}, *own.optimizer);

    EXPECT_TRUE(own.equals(Replica(world_.size() > 1 ? 1 : 2)));
    EXPECT_TRUE(compare(like).is_within(0));
}

TEST_F(CheckpointTest, WhatIsNotTrainedIsComparedToo) {
    MixedModel model;
    FlatParameters parameters(model, [](const std::string&) { return true; });
    const auto optimizer = make_sgd(parameters, {});
    const bool is_odd = world_.rank() > 0 && world_.rank() == world_.size() - 1;
    const std::vector<std::string> like(static_cast<std::size_t>(world_.size()), "cpu");
    const auto others = alike_beside(parameters, model);
    const auto compare = [&] {
        return compare_replicas(world_, *communicator_, parameters, others, like);
    };
    EXPECT_EQ(others.size(), 4u);
    model.scales()[0] = -INFINITY;  // as in a mask, on all alike

    for (const auto& [name, change] : std::map<std::string, std::function<void()>>{
             {"frozen", [&] { model.frozen[2] += 7; }},
             {"table.counts", [&] { model.counts()[1] = 1; }},
             {"table.mask", [&] { model.mask().logical_not_(); }},
             {"table.scales", [&] { model.scales()[1] = NAN; }}}) {
        EXPECT_TRUE(compare().is_within(0));
        if (is_odd)
            change();
        const ReplicaDrift drift = compare();
        EXPECT_EQ(drift.is_within(1e9), world_.size() == 1);
        EXPECT_EQ(drift.tensor, world_.size() == 1 ? "" : name);
        copy_replica(*communicator_, parameters, others, *optimizer);
    }
    model.scales()[0] = 0.1;
    EXPECT_TRUE(stored_alike(model, world_.size() == 1 ? model : MixedModel{}));
}

}  // namespace
}  // namespace hetseq::test
