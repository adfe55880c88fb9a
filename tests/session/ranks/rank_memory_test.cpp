#include "hetseq/session/ranks/rank_memory.hpp"

#include <numeric>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/session/ranks/sharding.hpp"
#include "hetseq/session/run_settings.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t elements = std::int64_t{1} << 20;  // values of 4 MiB

// Ranks on CPUs, of which the first has `first_mb` and the others `others_mb` of memory.
class RankMemoryTest : public testing::Test {
protected:
    RankMemoryTest() {
        TensorRegistry model;
        for (const char* name : {"a", "b", "c", "d"})
            model.register_parameter(name, at::zeros({elements / 4}));
        parameters_.emplace(model, [](const std::string&) { return true; });
        adam_ = make_adam(*parameters_, {});
    }

    RunSettings settings(OptionValues values, std::int64_t first_mb, std::int64_t others_mb) const {
        values.insert({{"task", "mnist"}, {"device", "cpu"}});
        RunSettings settings = set_up_ranks(
            world_, settle_options(world_, {values, {}}, builtin_parts()), builtin_parts());
        for (RankInfo& info : settings.topology.ranks)
            info.memory_mb = info.rank == 0 ? first_mb : others_mb;
        return settings;
    }
    MemoryAccount account(const RunSettings& settings, bool saves = false) const {
        constexpr double mib_bytes = 1 << 20;
        return {
            world_,
            settings,
            {.elements = parameters_->values().numel(),
             .element_bytes = parameters_->values().element_size(),
             .small = *adam_,
             .bucket_mb = static_cast<double>(bucket_bytes(settings, *parameters_)) / mib_bytes},
            {.process_mb = 10},
            saves};
    }
    double term(const MemoryAccount& account, int rank, const std::string& name) const {
        for (const MemoryTerm& term : account.terms(rank))
            if (term.name == name)
                return term.mb;
        return -1;
    }
    static std::string error_of(const MemoryAccount& account, const RunSettings& settings) {
        try {
            account.check(settings);
        } catch (const BadConfig& error) {
            return error.what();
        }
        return "";
    }

    HostComm world_ = test::world();
    std::optional<FlatParameters> parameters_;
    std::unique_ptr<Optimizer> adam_;
};

TEST_F(RankMemoryTest, EachRankHoldsAllUnlessTheStateIsCut) {
    RunSettings run = settings({{"shard", "optimizer"}, {"shard-by", "0=1,1-9=3"}}, 1000, 1000);
    MemoryAccount whole = account(run, /*saves=*/true);

    EXPECT_EQ(term(whole, 0, "values"), 4);
    EXPECT_EQ(term(whole, 0, "state"), 8);
    // The file of the state is larger, and rank 0's; that of the values is the next rank's.
    const int writes_values = world_.size() > 1 ? 1 : 0;
    EXPECT_EQ(term(whole, 0, "copies"), world_.size() == 1 ? 12 : 8);
    EXPECT_EQ(term(whole, writes_values, "copies"), world_.size() == 1 ? 12 : 4);

    shard_state(run, *parameters_, whole.room_for_state(), world_.rank());
    whole.note_shards(*parameters_);
    double state = 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
        state += term(whole, rank, "state");
        EXPECT_EQ(term(whole, rank, "copies"),
                  term(whole, rank, "state") + (rank == writes_values ? 4 : 0));
    }
    EXPECT_EQ(state, 8);
    EXPECT_NEAR(term(whole, 0, "state"), 8.0 / (3 * world_.size() - 2), 0.2);
}

TEST_F(RankMemoryTest, LateUpdatesTakeSetsOfGradientsAndCopiesOfSums) {
    const MemoryAccount late = account(settings({{"staleness", "2"}}, 1000, 1000), /*saves=*/true);
    const MemoryAccount others = account(settings({}, 1000, 1000), /*saves=*/true);

    EXPECT_EQ(term(late, 0, "gradients"), 3 * term(others, 0, "gradients"));
    double copies = 0, copies_of_others = 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
        copies += term(late, rank, "copies");
        copies_of_others += term(others, rank, "copies");
    }
    EXPECT_EQ(copies, copies_of_others + 2 * 4);
}

TEST_F(RankMemoryTest, AStageHoldsItsPartAndTheCopyOfAllThatItSaves) {
    const RunSettings run = settings({}, 1000, 1000);
    MemoryAccount stages = account(run, /*saves=*/true);

    stages.note_stage(0, elements / 4);
    stages.note_stage_activations(0, 7);

    EXPECT_EQ(term(stages, 0, "values"), 1);
    EXPECT_EQ(term(stages, 0, "gradients"), 1);
    EXPECT_EQ(term(stages, 0, "state"), 2);
    EXPECT_EQ(term(stages, 0, "copies"), 3);
    EXPECT_EQ(term(stages, 0, "activations"), 7);
}

// Ranks 0 and 1 write the state's file and the model.
TEST_F(RankMemoryTest, AStageThatWritesAFileHoldsWhatOthersSendForIt) {
    MemoryAccount stages = account(settings({}, 1000, 1000), /*saves=*/true);

    for (int rank = 0; rank < world_.size(); ++rank)
        stages.note_stage(rank, elements / 4);

    EXPECT_EQ(term(stages, 0, "scratch"), world_.size() > 1 ? 3 * 3 : 0);
    if (world_.size() > 2) {
        EXPECT_EQ(term(stages, 1, "scratch"), 3 * 3);
        EXPECT_EQ(term(stages, 2, "scratch"), 0);
    }
}

TEST_F(RankMemoryTest, RoomIsWhatIsLeftForAStateAndItsCopy) {
    const RunSettings run = settings({}, 100, 20);
    // 10 of the process, 8 of values and gradients; 8 bytes an element of the state.
    const double scratch = world_.size() > 1 ? term(account(run), 0, "scratch") : 0;
    const auto room = account(run).room_for_state();
    EXPECT_NEAR(static_cast<double>(room[0]), (90 - 18 - scratch) * (1 << 20) / 8, 1);
    for (std::size_t r = 1; r < room.size(); ++r)
        EXPECT_EQ(room[r], 0);  // 18 are used
    const auto with_copies = account(run, /*saves=*/true).room_for_state();
    const double values = world_.size() == 1 ? 4 : 0;  // rank 1 writes them where it can
    EXPECT_NEAR(
        static_cast<double>(with_copies[0]), (90 - 18 - scratch - values) * (1 << 20) / 16, 1);
}

TEST_F(RankMemoryTest, RanksThatActivationsMakeTooLargeAreNamed) {
    const RunSettings run = settings({}, 30, 1000);
    MemoryAccount tight = account(run);
    EXPECT_THAT(tight.table(run), Not(HasSubstr("memory may be too small")));

    tight.note_stage_activations(0, 20);

    EXPECT_THAT(
        tight.table(run),
        HasSubstr("memory may be too small on rank 0, where the system may end this job: "));
}

// 10 of the process, 16 of the model, 12 of copies, and others' for those that write more.
TEST_F(RankMemoryTest, RanksWhoseMemoryIsShortGoWithoutCopies) {
    const RunSettings run = settings({}, 1000, 1000);
    MemoryAccount roomy = account(run, /*saves=*/true);
    EXPECT_TRUE(roomy.counts_copies());
    roomy.leave_out_copies_where_short();
    EXPECT_TRUE(roomy.has_copies(0));
    EXPECT_THAT(roomy.table(run), Not(HasSubstr("no memory is left for copies")));
    EXPECT_THAT(roomy.table(run), Not(HasSubstr("memory may be too small")));

    const RunSettings tight = settings({}, 35, 1000);
    MemoryAccount short_one = account(tight, /*saves=*/true);
    short_one.note_stage(0, elements);
    for (int rank = 1; rank < world_.size(); ++rank)
        short_one.note_stage(rank, elements / 2);
    const double others = term(short_one, world_.size() - 1, "copies");
    short_one.leave_out_copies_where_short();
    EXPECT_FALSE(short_one.has_copies(0));
    EXPECT_EQ(term(short_one, 0, "copies"), 0);
    EXPECT_TRUE(short_one.fits(0));
    EXPECT_THAT(short_one.table(tight), HasSubstr("no memory is left for copies on rank 0: "));
    if (world_.size() > 1) {
        EXPECT_TRUE(short_one.has_copies(world_.size() - 1));
        EXPECT_EQ(term(short_one, world_.size() - 1, "copies"), others);
    }
    // A twentieth is left free: 26 is more than 25.65. Where activations are known all counts.
    const RunSettings tighter = settings({}, 27, 1000);
    MemoryAccount too_full = account(tighter, /*saves=*/true);
    too_full.note_stage(0, elements);
    too_full.leave_out_copies_where_short();
    EXPECT_THAT(error_of(too_full, tighter),
                HasSubstr("it has 27 MiB, of which a twentieth is left"));
    too_full.note_stage_activations(0, 1);
    EXPECT_EQ(error_of(too_full, tighter), "");
    // What it writes it may have to collect from others.
    MemoryAccount stage = account(tight, /*saves=*/true);
    stage.leave_out_copies();
    stage.note_stage(0, elements / 4);
    EXPECT_EQ(term(stage, 0, "copies"), 0);
    EXPECT_EQ(term(stage, 0, "scratch"), world_.size() > 1 ? 3 * 3 : 0);
}

TEST_F(RankMemoryTest, AStateThatDoesNotFitWithItsCopiesFitsWithoutThem) {
    if (world_.size() == 1)
        GTEST_SKIP() << "one rank has the whole state";
    // Together they have room for a state of 8 MiB, and not for as much of copies.
    const double beside = 18 + term(account(settings({}, 1000, 1000)), 0, "scratch");
    const auto mib = static_cast<std::int64_t>((beside + 9.0 / world_.size()) / 0.9 + 1);
    RunSettings run = settings({{"shard", "optimizer"}}, mib, mib);
    MemoryAccount cut = account(run, /*saves=*/true);
    const std::vector<std::int64_t> room = cut.room_for_state();
    EXPECT_GE(std::accumulate(room.begin(), room.end(), std::int64_t{0}), elements);

    shard_state(run, *parameters_, room, world_.rank());
    cut.note_shards(*parameters_);
    cut.leave_out_copies_where_short();
    EXPECT_FALSE(cut.has_copies(1));
    EXPECT_EQ(error_of(cut, run), "");
}

TEST_F(RankMemoryTest, WhatCannotFitIsAnErrorWithTheNumbersAndACure) {
    const RunSettings whole = settings({}, 1000, 27);
    const std::string text = error_of(account(whole), whole);
    if (world_.size() == 1) {
        EXPECT_EQ(text, "");
        return;
    }
    EXPECT_THAT(text, HasSubstr("the memory of rank 1 on "));
    EXPECT_THAT(text, HasSubstr("process 10 + values 4 + gradients 4 + state 8"));
    EXPECT_THAT(text, HasSubstr("it has 27 MiB"));
    EXPECT_THAT(text, HasSubstr("--shard optimizer"));

    const RunSettings even =
        settings({{"shard", "optimizer"}, {"shard-by", "0=0,1-9=1"}}, 1000, 21);
    MemoryAccount cut = account(even);
    shard_state(even, *parameters_, cut.room_for_state(), world_.rank());
    cut.note_shards(*parameters_);
    EXPECT_THAT(error_of(cut, even), HasSubstr("--shard-by memory"));
}

// Late gradients and a state that is cut exclude each other.
TEST_F(RankMemoryTest, WhereGradientsAreLateNoCutStateIsAdvised) {
    const RunSettings run = settings({{"staleness", "1"}}, 1000, 27);
    const MemoryAccount late = account(run);

    EXPECT_FALSE(late.can_cut_state());
    EXPECT_TRUE(account(settings({}, 1000, 27)).can_cut_state());
    EXPECT_THAT(error_of(late, run), Not(HasSubstr("--shard")));
}

TEST_F(RankMemoryTest, WhereNothingHelpsTheCureIsAnother) {
    const RunSettings run = settings({}, 15, 15);

    EXPECT_THAT(error_of(account(run), run), HasSubstr("use a smaller model"));
    EXPECT_THAT(error_of(account(run), run), Not(HasSubstr("--shard")));
}

TEST_F(RankMemoryTest, TheTableHasAColumnForEachTermThatThereIs) {
    const RunSettings run = settings({}, 1000, 1000);
    MemoryAccount all = account(run);
    EXPECT_THAT(all.table(run), Not(HasSubstr("activations")));

    all.note_activations(
        world_, std::vector<double>(static_cast<std::size_t>(world_.size()), 33), 159);

    EXPECT_THAT(all.table(run), HasSubstr("activations"));
    EXPECT_THAT(all.table(run), Not(HasSubstr("casts")));
    EXPECT_EQ(term(all, 0, "activations"), 33);
    EXPECT_EQ(term(all, 0, "process"), 159 - 33 - 16);  // what the peak has beside the others
}

TEST(ShardPartsTest, AreWordsOfOneKindOrNumbers) {
    using By = ShardPart::By;
    const ShardPart memory{By::memory}, even{By::even};
    const auto number = [](std::int64_t part) { return ShardPart{By::number, part}; };
    EXPECT_THAT(shard_parts({memory, memory}, {7, 0}), ElementsAre(7, 0));
    EXPECT_THAT(shard_parts({even, even}, {7, 0}), ElementsAre(1, 1));
    EXPECT_THAT(shard_parts({number(3), number(0)}, {7, 0}), ElementsAre(3, 0));
    EXPECT_THROW(shard_parts({number(3), even}, {7, 0}), BadConfig);
    EXPECT_THROW(shard_parts({memory, even}, {7, 0}), BadConfig);
    EXPECT_THROW(shard_parts({number(0), number(0)}, {7, 0}), BadConfig);
    EXPECT_THROW(shard_parts({memory, memory}, {0, 0}), BadConfig);
}

}  // namespace
}  // namespace hetseq
