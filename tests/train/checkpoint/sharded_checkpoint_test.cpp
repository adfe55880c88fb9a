#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <sys/resource.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/checkpoint/checkpoint_reader.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"

#include "train/checkpoint/checkpoint_fixture.hpp"
#include <pthread.h>

namespace hetseq {

namespace test {
namespace {
std::atomic<const char*> throwing_point = "";      // the fault point that throws
std::atomic<std::thread::id> collecting_thread{};  // that came to this fault point last
std::atomic<bool> held_up = false;                 // whoever comes to a checkpoint's files
}  // namespace
}  // namespace test

// In the place of the program's own, which does nothing.
void fault_point(const char* name, std::int64_t) {
    if (name == std::string("checkpoint_collect"))
        test::collecting_thread = std::this_thread::get_id();
    while (name == std::string("checkpoint_write") && test::held_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (name == std::string(test::throwing_point))
        throw std::runtime_error("a fault on purpose");
}

namespace test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::int64_t most_in_file = 100'000;  // bytes, so that there are several
constexpr std::int64_t most_in_block = FlatParameters::most_in_block;

// Its largest parameter has several blocks, the last of which is not full.
class WideModel : public Model {
public:
    WideModel() {
        register_parameter("wide", at::ones({4, most_in_block + 5}));
        register_parameter("bias", at::ones({7}));
        register_parameter("square", at::ones({130, 130}));
        register_parameter("last", at::ones({3}));
        register_buffer("mask", at::arange(6, at::kLong).eq(2));
    }
    std::vector<std::string> loss_terms() const override { return {"loss"}; }
    std::vector<MetricSchema> metrics() const override { return {}; }
    ForwardResult forward(const MicroBatch&, const ForwardContext&) override { return {}; }
};

// State that tells the place of each element among all parameters.
class StateOfPlaces final : public Optimizer {
public:
    StateOfPlaces(const FlatParameters& parameters, double seed)
        : parameters_{parameters},
          sums_{parameters.state_zeros()},
          squares_{parameters.state_zeros()},
          step_{at::full({}, static_cast<std::int64_t>(seed), at::kLong)},
          own_{at::full({2, 3}, seed, at::kDouble)} {
        fill(seed);
    }
    void fill(double seed) {
        for (const FlatParameters::Held& held : parameters_.held()) {
            const at::Tensor places = at::arange(held.offset, held.offset + held.numel, at::kFloat);
            sums_.narrow(0, held.state_offset, held.numel).copy_(places + seed);
            squares_.narrow(0, held.state_offset, held.numel).copy_(places * 0.5 - seed);
        }
    }
    void step(FlatParameters&, double) override {}
    std::map<std::string, at::Tensor> state() const override {
        return {{"exp_avg", sums_}, {"exp_avg_sq", squares_}, {"step", step_}, {"own/wide", own_}};
    }

private:
    const FlatParameters& parameters_;
    at::Tensor sums_, squares_;  // (held)
    at::Tensor step_;            // ()
    at::Tensor own_;             // (2, 3)
};

// Who holds a block's state.
struct Cut {
    const char* name;
    std::function<int(int block, int blocks, int ranks)> owner;  // empty: every rank
};

const Cut every_rank_holds_all{"none", {}};
const Cut even{"even", [](int block, int blocks, int ranks) { return block * ranks / blocks; }};
const Cut alternating{"alternating", [](int block, int, int ranks) { return block % ranks; }};
const Cut last_rank_holds_all{"last", [](int, int, int ranks) { return ranks - 1; }};
const Cut rank_0_holds_nothing{
    "others", [](int block, int, int ranks) { return ranks == 1 ? 0 : 1 + block % (ranks - 1); }};
const std::vector<Cut> cuts{
    every_rank_holds_all, even, alternating, last_rank_holds_all, rank_0_holds_nothing};

// A range for each block, to where the next one begins.
std::vector<OwnedRange> ranges_of(const FlatParameters& parameters, const Cut& cut, int ranks) {
    const auto& blocks = parameters.blocks();
    std::vector<OwnedRange> ranges;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const std::int64_t end =
            i + 1 < blocks.size() ? blocks[i + 1].offset : parameters.values().numel();
        ranges.push_back({cut.owner(static_cast<int>(i), static_cast<int>(blocks.size()), ranks),
                          blocks[i].offset,
                          end - blocks[i].offset});
    }
    return ranges;
}

// Whether what this rank holds of two lists of the same files is equal.
bool have_equal_parts(const std::vector<CheckpointFile>& a, const std::vector<CheckpointFile>& b) {
    bool equal = true;
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t t = 0; t < a[i].tensors.size(); ++t)
            for (std::size_t p = 0; p < a[i].tensors[t].parts.size(); ++p) {
                const at::Tensor& values = a[i].tensors.at(t).parts.at(p).values;
                const at::Tensor& others = b.at(i).tensors.at(t).parts.at(p).values;
                equal = equal && values.defined() == others.defined() &&
                        (!values.defined() || values.equal(others));
            }
    return equal;
}

// What a rank has of a run whose optimizer's state is cut.
struct Shard {
    Shard(double seed, const Cut& cut, const HostComm& world)
        : parameters{model, [](const std::string&) { return true; }} {
        parameters.values().fill_(seed);
        if (cut.owner)
            parameters.shard_state(ranges_of(parameters, cut, world.size()), world.rank());
        optimizer = std::make_unique<StateOfPlaces>(parameters, seed);
    }

    std::vector<CheckpointFile> files() const {
        return checkpoint_files(model, parameters, *optimizer, most_in_file);
    }
    bool equals(const Shard& other) const { return have_equal_parts(files(), other.files()); }

    WideModel model;
    FlatParameters parameters;
    std::unique_ptr<StateOfPlaces> optimizer;
};

class ShardedCheckpointTest : public CheckpointFixture {
protected:
    using Files = std::map<std::string, FileDigest>;

    // Saved while the state changes as soon as it may. `copies`: of this rank.
    fs::path save(Shard& shard, std::int64_t update, bool copies = true) const {
        CheckpointWriter writer(
            world_, checkpoints_, shard.files(), {.threads_may_call_mpi = true, .copies = copies});
        writer.start(state_of(update));
        writer.wait_for_copy();
        shard.optimizer->fill(-1);
        shard.parameters.values().fill_(-1);
        writer.finish();
        world_.barrier();
        return checkpoints_.of_update(update);
    }
    // What a single rank that holds everything saves.
    Files saved_alone(const std::vector<CheckpointFile>& files, std::int64_t update) const {
        const CheckpointFolder folder(base_ / ("alone-" + std::to_string(update)));
        on_rank_0([&] {
            CheckpointWriter alone(HostComm::serial(), folder, files, {});
            alone.start(state_of(update));
            alone.finish();
        });
        return read_manifest(folder.of_update(update)).files;
    }
    Files saved_alone(double seed, std::int64_t update) const {
        return saved_alone(Shard(seed, every_rank_holds_all, HostComm::serial()).files(), update);
    }
    void load(const fs::path& folder, const std::vector<CheckpointFile>& files) const {
        load_checkpoint(world_, *communicator_, folder, files);
    }
    bool is_last_rank() const { return world_.rank() == world_.size() - 1; }
};

TEST_F(ShardedCheckpointTest, FilesHaveTheSameBytesWhoeverHoldsTheState) {
    const Files expected = saved_alone(3, 5);
    ASSERT_GT(expected.size(), 6U);

    for (const Cut& cut : cuts) {
        Shard shard(3, cut, world_);
        const fs::path folder = save(shard, 5);

        EXPECT_EQ(read_manifest(folder).files, expected) << cut.name;
        EXPECT_NO_THROW(verified_state(world_, folder)) << cut.name;
        on_rank_0([&] { fs::remove_all(folder); });
    }
}

TEST_F(ShardedCheckpointTest, WithoutCopiesFilesHaveTheSameBytes) {
    const Files expected = saved_alone(3, 5);
    for (const Cut& cut : cuts)
        for (const bool copies : {false, world_.rank() % 2 == 0}) {
            Shard shard(3, cut, world_);
            const fs::path folder = save(shard, 5, copies);

            EXPECT_EQ(read_manifest(folder).files, expected) << cut.name;
            on_rank_0([&] { fs::remove_all(folder); });
        }
}

TEST_F(ShardedCheckpointTest, WithoutCopiesTheNextOneMayBeOfOtherTensors) {
    const Shard first(3, alternating, world_), second(8, alternating, world_);
    CheckpointWriter writer(
        world_, checkpoints_, first.files(), {.threads_may_call_mpi = true, .copies = false});
    writer.start(state_of(1));
    writer.use(second.files());
    writer.start(state_of(2));
    writer.finish();
    world_.barrier();

    EXPECT_EQ(read_manifest(checkpoints_.of_update(1)).files, saved_alone(3, 1));
    EXPECT_EQ(read_manifest(checkpoints_.of_update(2)).files, saved_alone(8, 2));
}

// Not while their files are held up, those of ranks that have nothing to give either.
TEST_F(ShardedCheckpointTest, WithoutCopiesTensorsAreFreeWhenTheFilesHaveThem) {
    const Shard shard(3, last_rank_holds_all, world_);
    CheckpointWriter writer(
        world_, checkpoints_, shard.files(), {.threads_may_call_mpi = true, .copies = false});
    held_up = true;
    writer.start(state_of(1));
    std::this_thread::sleep_for(100ms);
    EXPECT_TRUE(writer.is_copying());
    held_up = false;
    writer.wait_for_copy();
    EXPECT_FALSE(writer.is_copying());
    writer.finish();
}

TEST_F(ShardedCheckpointTest, ARunContinuesWithAnotherCut) {
    for (const Cut& before : cuts) {
        Shard saved(3, before, world_);
        const fs::path folder = save(saved, 5);
        for (const Cut& after : cuts) {
            Shard continued(8, after, world_);
            const Shard expected(3, after, world_);
            ASSERT_FALSE(continued.equals(expected));

            load(folder, continued.files());

            EXPECT_TRUE(continued.equals(expected)) << before.name << " to " << after.name;
        }
        on_rank_0([&] { fs::remove_all(folder); });
    }
}

TEST_F(ShardedCheckpointTest, OneThatDoesNotFitIsRefusedByAllRanksAndChangesNothing) {
    Shard saved(3, even, world_);
    const fs::path folder = save(saved, 5);
    Shard other(8, alternating, world_);
    const Shard before(8, alternating, world_);
    std::vector<CheckpointFile> files = other.files();
    files.back().tensors.back().shape.push_back(1);

    EXPECT_THROW(load(folder, files), AgreedError);
    EXPECT_TRUE(other.equals(before));
}

// A tensor of which each part is as long as told, held by ranks in turn and now and then by all.
CheckpointTensor odd_tensor(const std::string& name,
                            const at::Tensor& values,
                            const std::vector<std::int64_t>& lengths,
                            const HostComm& world,
                            int first_holder) {
    CheckpointTensor tensor{name, values.scalar_type(), values.sizes().vec(), {}};
    const at::Tensor flat = values.view({-1});
    std::int64_t begin = 0;
    int holder = first_holder;
    for (std::size_t i = 0; begin < flat.numel(); ++i) {
        const std::int64_t numel = std::min(lengths[i % lengths.size()], flat.numel() - begin);
        holder = (holder + 2) % (world.size() + 1) - 1;  // -1: every rank
        const bool holds = holder == CheckpointPart::every_rank || holder == world.rank();
        tensor.parts.push_back(
            {holder, numel, holds ? flat.narrow(0, begin, numel) : at::Tensor()});
        begin += numel;
    }
    return tensor;
}

struct OddValues {
    explicit OddValues(std::int64_t seed)
        : bytes{at::arange(1001).add(seed).remainder(200).to(at::kByte)},
          flags{(at::arange(77).add(seed).remainder(3) == 0)},
          half{at::arange(5000).add(seed).to(at::kBFloat16).view({50, 100})},
          wide{at::arange(3'000'000).add(seed).to(at::kDouble).view({1000, 3000})},
          none{at::zeros({0, 3})} {}

    std::vector<CheckpointFile> whole() const {
        return {{"model.safetensors",
                 {whole_tensor({"bytes", bytes}),
                  whole_tensor({"half", half}),
                  whole_tensor({"wide", wide})}},
                {"b.safetensors",
                 {whole_tensor({"flags", flags}),
                  whole_tensor({"none", none}),
                  whole_tensor({"twice", wide})}}};
    }
    std::vector<CheckpointFile> cut(const HostComm& world, int first) const {
        return {{"model.safetensors",
                 {odd_tensor("bytes", bytes, {1, 500, 7}, world, first),
                  odd_tensor("half", half, {4999, 1}, world, first + 1),
                  odd_tensor("wide", wide, {1'100'001, 3, 900'000}, world, first)}},
                {"b.safetensors",
                 {odd_tensor("flags", flags, {3}, world, first),
                  odd_tensor("none", none, {3}, world, first),
                  odd_tensor("twice", wide, {2'999'999, 1}, world, first)}}};
    }

    at::Tensor bytes, flags, half, wide, none;
};

TEST_F(ShardedCheckpointTest, PartsMayEndAnywhereInTensorsOfAnyType) {
    const OddValues values(1);
    const Files expected = saved_alone(values.whole(), 5);
    for (int first = 0; first < 3; ++first) {
        CheckpointWriter writer(
            world_, checkpoints_, values.cut(world_, first), {.threads_may_call_mpi = true});
        writer.start(state_of(first));
        writer.finish();
        world_.barrier();
        Files files = read_manifest(checkpoints_.of_update(first)).files;
        for (const char* name : {"model.safetensors", "b.safetensors"})
            EXPECT_EQ(files.at(name), expected.at(name)) << name << " " << first;
    }

    const OddValues loaded(70);
    load(checkpoints_.of_update(0), loaded.cut(world_, 2));
    EXPECT_TRUE(have_equal_parts(loaded.cut(world_, 2), values.cut(world_, 2)));
}

// As a pipeline's ranks hold a model. This one is not contiguous, and larger than what is read at
// once.
TEST_F(ShardedCheckpointTest, AWholeTensorMayLieOnOneRank) {
    const auto files = [&](at::Tensor tensor) {
        if (!is_last_rank())
            tensor = at::Tensor();
        const CheckpointTensor one{
            "one", at::kFloat, {2500, 2000}, {{world_.size() - 1, 5'000'000, tensor}}};
        return std::vector<CheckpointFile>{{"model.safetensors", {one}}};
    };
    const at::Tensor saved = at::arange(5'000'000, at::kFloat).view({2000, 2500}).t();
    CheckpointWriter writer(world_, checkpoints_, files(saved), {.threads_may_call_mpi = true});
    writer.start(state_of(1));
    writer.finish();
    world_.barrier();
    const at::Tensor loaded = at::zeros({2000, 2500}).t();

    load(checkpoints_.of_update(1), files(loaded));

    EXPECT_EQ(loaded.equal(saved), is_last_rank());
    EXPECT_EQ(read_manifest(checkpoints_.of_update(1)).files,
              saved_alone({{"model.safetensors", {whole_tensor({"one", saved})}}}, 1));
}

class ShardedFailureTest : public ShardedCheckpointTest,
                           public testing::WithParamInterface<std::tuple<const char*, bool>> {};

INSTANTIATE_TEST_SUITE_P(PointsAndCopies,
                         ShardedFailureTest,
                         testing::Combine(testing::Values("checkpoint_copy",
                                                          "checkpoint_write",
                                                          "checkpoint_collect",
                                                          "file"),
                                          testing::Bool()));

// On a rank that writes files, or on one that also holds parts.
TEST_P(ShardedFailureTest, OneRanksFailureLeavesOutTheCheckpointOnAllAndTheNextIsSaved) {
    const Shard shard(3, alternating, world_);
    const Files expected = saved_alone(3, 7);
    const auto& [point, copies] = GetParam();
    CheckpointWriter writer(
        world_, checkpoints_, shard.files(), {.threads_may_call_mpi = true, .copies = copies});
    const bool can_fail = world_.size() > 1 || point != std::string("checkpoint_collect");

    for (const int failing : {0, world_.size() - 1}) {
        if (world_.rank() == failing)
            throwing_point = point;
        writer.start(state_of(6));
        writer.wait_for_copy();
        if (can_fail) {
            EXPECT_THROW(writer.finish(), AgreedError) << failing;
        } else {
            writer.finish();
        }
        throwing_point = "";
        EXPECT_EQ(fs::exists(checkpoints_.of_update(6)), !can_fail);
        world_.barrier();
    }
    writer.start(state_of(7));
    writer.finish();
    world_.barrier();

    EXPECT_EQ(read_manifest(checkpoints_.of_update(7)).files, expected);
}

// While one exists, no file of this process grows beyond `bytes`, as on a full disk.
class FileLimit {
public:
    explicit FileLimit(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

private:
    void (*handler_)(int);
    rlimit before_{};
};

// In the midst of a file, when other ranks still have parts for it.
TEST_F(ShardedCheckpointTest, AFullDiskOfOneRankKeepsNobodyWaiting) {
    const OddValues values(1);
    CheckpointWriter writer(
        world_, checkpoints_, values.cut(world_, 0), {.threads_may_call_mpi = true});
    {
        const FileLimit limit(world_.rank() == 0 ? 3'000'000 : RLIM_INFINITY);
        writer.start(state_of(6));
        EXPECT_THROW(writer.finish(), AgreedError);
    }
    EXPECT_FALSE(fs::exists(checkpoints_.of_update(6)));
    world_.barrier();
    writer.start(state_of(7));
    EXPECT_NO_THROW(writer.finish());
    world_.barrier();

    EXPECT_NO_THROW(verified_state(world_, checkpoints_.of_update(7)));
}

TEST_F(ShardedCheckpointTest, WithoutThreadsInMpiTheCallerCollects) {
    const Shard shard(3, alternating, world_);
    const bool collects = world_.size() > 1;
    for (const bool threads : {false, true}) {
        CheckpointWriter writer(
            world_, checkpoints_, shard.files(), {.threads_may_call_mpi = threads});
        collecting_thread = std::thread::id();
        writer.start(state_of(threads ? 2 : 1));
        if (collects && !threads) {
            EXPECT_FALSE(writer.is_copying());
        }
        writer.finish();
        world_.barrier();

        EXPECT_EQ(collecting_thread.load() == std::this_thread::get_id(), collects && !threads);
        EXPECT_EQ(collecting_thread.load() == std::thread::id(), !collects);
    }
    const Files files = read_manifest(checkpoints_.of_update(1)).files;
    const Files others = read_manifest(checkpoints_.of_update(2)).files;
    EXPECT_EQ(files.at("model.safetensors"), others.at("model.safetensors"));
    EXPECT_EQ(files.size(), others.size());
}

// While one exists, this process starts no thread: its stack would not fit into any memory.
class NoThreads {
public:
    NoThreads() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t endless = before_;
        ::pthread_attr_setstacksize(&endless, std::size_t{1} << 47);
        ::pthread_setattr_default_np(&endless);
    }
    ~NoThreads() { ::pthread_setattr_default_np(&before_); }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;

private:
    pthread_attr_t before_{};
};

TEST_F(ShardedCheckpointTest, ARankThatGetsNoThreadSavesByItself) {
    const Shard shard(3, alternating, world_);
    CheckpointWriter writer(world_, checkpoints_, shard.files(), {.threads_may_call_mpi = true});
    collecting_thread = std::thread::id();
    std::optional<NoThreads> none;
    if (is_last_rank())
        none.emplace();

    writer.start(state_of(5));
    if (is_last_rank()) {
        EXPECT_FALSE(writer.is_copying());
    }
    writer.finish();
    none.reset();
    world_.barrier();

    EXPECT_EQ(read_manifest(checkpoints_.of_update(5)).files, saved_alone(3, 5));
    EXPECT_EQ(collecting_thread.load() == std::this_thread::get_id(),
              is_last_rank() && world_.size() > 1);
}

// The others have started a checkpoint for which rank 0 never comes.
TEST_F(ShardedCheckpointTest, AnExceptionDoesNotWaitForRanksThatNeverSend) {
    const auto begin = std::chrono::steady_clock::now();
    try {
        const Shard shard(3, alternating, world_);
        CheckpointWriter writer(
            world_, checkpoints_, shard.files(), {.threads_may_call_mpi = true});
        if (world_.rank() != 0)
            writer.start(state_of(1));
        throw std::runtime_error("the job ends");
    } catch (const std::runtime_error&) {
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
    }
}

}  // namespace
}  // namespace test
}  // namespace hetseq
