#include "hetseq/session/pipeline/choose_layout.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/bert/bert.hpp"
#include "hetseq/session/pipeline/recorded_layout.hpp"
#include "hetseq/session/ranks/by_rank.hpp"
#include "hetseq/session/run_settings.hpp"

#include "model/mixed_model.hpp"
#include "session/pipeline/best_layout.hpp"
#include "session/pipeline/chain_memory.hpp"
#include "session/pipeline/rank_classes.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Parts parts_with_a_model_of_one_piece() {
    Parts parts = builtin_parts();
    parts.models.add("piece",
                     [](const PartOptions&) { return std::make_shared<test::MixedModel>(); });
    return parts;
}

// MNIST's network has units.
class ChooseLayoutTest : public testing::Test {
protected:
    RunSettings settings(OptionValues values) const {
        values.insert({{"task", "mnist"}, {"device", "cpu"}, {"max-sentences", "4"}});
        return set_up_ranks(world_, settle_options(world_, {values, {}}, parts_), parts_);
    }
    std::optional<PipelineLayout> plan(const OptionValues& values) const {
        return choose_layout(test::environment(), world_, settings(values), parts_, true).pipelines;
    }
    std::string refusal_of(const OptionValues& values) const {
        try {
            plan(values);
        } catch (const AgreedError& error) {
            EXPECT_EQ(error.code(), ExitCode::config);
            return error.what();
        }
        return "none";
    }
    std::size_t units() const {
        return parts_.models.get("mnist-cnn")(settings({}).options().parts)->chain().size();
    }
    // So many stages, of which the last has what is left.
    std::string units_in(int stages) const {
        std::vector<std::string> numbers(static_cast<std::size_t>(stages), "1");
        numbers.back() = std::to_string(units() - numbers.size() + 1);
        return join(numbers, "+");
    }

    HostComm world_ = test::world();
    Parts parts_ = parts_with_a_model_of_one_piece();
};

TEST_F(ChooseLayoutTest, WithoutAVirtualWorkerThereIsNone) {
    EXPECT_FALSE(plan({}));
    EXPECT_FALSE(plan({{"virtual-workers", "none"}, {"stage-units", "nonsense"}}));
}

TEST_F(ChooseLayoutTest, AGivenCutIsTakenInTheOrderOfTheList) {
    const int last = world_.size() - 1;
    std::vector<std::string> names;
    for (int rank = world_.size(); rank-- > 0;)
        names.push_back(std::to_string(rank));

    const auto layout =
        plan({{"virtual-workers", join(names, "+")}, {"stage-units", units_in(world_.size())}});

    ASSERT_TRUE(layout);
    ASSERT_EQ(layout->workers.size(), 1U);
    const WorkerLayout& worker = layout->workers.front();
    EXPECT_EQ(worker.ranks.front(), last);
    EXPECT_EQ(worker.ranks.back(), 0);
    EXPECT_EQ(worker.cut.units.front().begin, 0U);
    EXPECT_EQ(worker.cut.units.back().end, units());
    EXPECT_EQ(worker.cut.most_in_flight.front(), static_cast<std::size_t>(world_.size()));
    EXPECT_EQ(worker.cut.most_in_flight.back(), 1U);
    EXPECT_EQ(worker.micro_batch, 4);
}

// Each stage has every micro-batch. A rank whose own are empty has no say.
TEST_F(ChooseLayoutTest, TheSmallestMicroBatchOfAllIsTaken) {
    const auto layout = plan({{"virtual-workers", "auto"},
                              {"stage-units", units_in(world_.size())},
                              {"max-sentences", world_.size() == 1 ? "6" : "0=6,1=3,2=0"}});

    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->workers.front().micro_batch, world_.size() == 1 ? 6 : 3);
}

TEST_F(ChooseLayoutTest, EachWorkerHasACutOfItsOwn) {
    if (world_.size() < 3)
        GTEST_SKIP() << "two workers of unlike size need three ranks";
    const std::string whole = std::to_string(units());

    const auto layout = plan({{"virtual-workers", "2,0+1"},
                              {"stage-units", whole + "," + units_in(2) + ":1"},
                              {"balance", "equal"},
                              {"max-sentences", "0=6,1=3,2=4"}});

    ASSERT_TRUE(layout);
    ASSERT_EQ(layout->workers.size(), 2U);
    EXPECT_THAT(layout->workers[0].ranks, ElementsAre(2));
    EXPECT_EQ(layout->workers[0].micro_batch, 4);
    EXPECT_THAT(layout->workers[1].ranks, ElementsAre(0, 1));
    EXPECT_EQ(layout->workers[1].micro_batch, 3);
    EXPECT_EQ(layout->workers[1].extra_in_flight, 1U);
    EXPECT_THAT(layout->ranks(), ElementsAre(0, 1, 2));
    EXPECT_EQ(layout->place_of(1).worker, 1U);
    EXPECT_EQ(layout->place_of(1).stage, 1U);
    EXPECT_EQ(layout->units_of(2).end, units());
    EXPECT_THAT(refusal_of({{"virtual-workers", "2,0+1"}, {"stage-units", whole}}),
                AllOf(HasSubstr("is for 1 virtual worker"), HasSubstr("there are 2")));
}

TEST_F(ChooseLayoutTest, ACutThatDoesNotFitTheModelIsRefused) {
    const std::string units_of_model = std::to_string(units());
    EXPECT_THAT(refusal_of({{"virtual-workers", "0"}, {"stage-units", "1"}}),
                AllOf(HasSubstr("has 1 stage of 1 units together"),
                      HasSubstr("the model has " + units_of_model),
                      HasSubstr("give numbers with that sum, each 1 or more, or auto")));
    EXPECT_THAT(refusal_of({{"virtual-workers", "0"}, {"stage-units", units_in(2)}}),
                AllOf(HasSubstr("has 2 stages"),
                      HasSubstr("the virtual worker has 1 rank"),
                      HasSubstr("give a number for each of its ranks, or auto")));
    EXPECT_THAT(refusal_of({{"virtual-workers", "0"}, {"stage-units", "0+1"}}),
                HasSubstr("'0' is not a number of units"));
    EXPECT_THAT(refusal_of({{"virtual-workers", "17"}}), HasSubstr("'17' is not within"));
}

TEST_F(ChooseLayoutTest, WhatCannotBeCutIsRefused) {
    EXPECT_THAT(refusal_of({{"virtual-workers", "auto"}, {"model", "piece"}}),
                AllOf(HasSubstr("--virtual-workers with --model piece"),
                      HasSubstr("the model is not a chain of units")));
    EXPECT_THAT(refusal_of({{"virtual-workers", "auto"}, {"shard", "optimizer"}}),
                AllOf(HasSubstr("--virtual-workers with --shard optimizer"),
                      HasSubstr("leave --shard out")));
}

TEST_F(ChooseLayoutTest, AWorkerWhoseRanksMayHoldNoSampleIsRefused) {
    if (world_.size() < 2)
        GTEST_SKIP() << "another rank must hold one";

    EXPECT_THAT(refusal_of({{"virtual-workers", "0"}, {"max-sentences", "0=0,1-9=4"}}),
                AllOf(HasSubstr("the most that a micro-batch may hold is 0 on rank 0"),
                      HasSubstr("--max-sentences")));
}

// The first two ranks, where there are so many, are on one host.
TEST_F(ChooseLayoutTest, RanksThatShareAHostHaveItsNumber) {
    RunSettings shared = settings({});
    std::vector<int> ranks;
    for (RankInfo& info : shared.topology.ranks) {
        info.host = info.rank < 2 ? "a" : "b";
        ranks.push_back(info.rank);
    }
    const std::vector<std::vector<UnitCost>> costs(ranks.size(), {{.forward_ms = 1}});

    const RankClasses classes = rank_classes(shared, ranks, costs);

    ASSERT_EQ(classes.hosts.size(), classes.ranks.size());
    for (std::size_t c = 0; c < classes.ranks.size(); ++c)
        EXPECT_EQ(classes.hosts[c].has_value(), ranks.size() > 1 && classes.ranks[c].front() < 2);
}

// With --balance auto the memory of several is measured again, and declared capacities are shares.
TEST_F(ChooseLayoutTest, ReplicasHaveTheMicroBatchesByWhichTheyFit) {
    LayoutChoice choice{.micro_batches =
                            std::vector<std::int64_t>(static_cast<std::size_t>(world_.size()), 0)};
    choice.micro_batches.front() = 2;
    const int by_auto = world_.size() > 1 ? 4 : 2;
    for (const auto& [balance, expected] :
         {std::pair{"equal", 2}, {"declared", 4}, {"auto", by_auto}}) {
        RunSettings own = settings({{"balance", balance}, {"virtual-workers", "auto"}});

        record_layout(choice, own);

        EXPECT_EQ(own.options().virtual_workers, "none");
        EXPECT_EQ(own.capacities.front(), expected) << balance;
        EXPECT_EQ(own.values().at("max-sentences"), list_by_rank(own.capacities).text());
        for (std::size_t r = 1; r < own.capacities.size(); ++r)
            EXPECT_EQ(own.capacities[r], 4);
    }
}

class ChainMemoryTest : public testing::Test {
protected:
    // Adam's 16 bytes an element, and 12 of a checkpoint's copy; a tied parameter is in two units.
    ChainMemory memory(std::int64_t has_mb, bool saves, std::size_t frozen_units = 0) const {
        RunSettings settings = set_up_ranks(
            world_,
            settle_options(world_, {{{"task", "mnist"}, {"device", "cpu"}}, {}}, builtin_parts()),
            builtin_parts());
        for (RankInfo& info : settings.topology.ranks)
            info.memory_mb = has_mb;
        const std::shared_ptr<Model> model = make_bert(bert_config("tiny"));
        const std::vector<ChainUnit> chain = model->chain();
        for (std::size_t unit = 0; unit < frozen_units; ++unit)
            for (const std::string& name : chain[unit].parameters)
                model->find_parameter(name).set_requires_grad(false);
        model->hold({0, 0});
        return chain_memory(
            world_, settings, builtin_parts(), *model, {.process_mb = 10, .data_mb = 5}, saves);
    }

    // What the larger part of two takes, or one rank alone: at the least, and at the most.
    static std::pair<double, double> parts_mb(const ChainMemory& chain, std::size_t units) {
        std::vector<double> larger_mb{chain.stage_mb(0, {0, units})};
        for (std::size_t cut = 1; cut < units; ++cut)
            larger_mb.push_back(
                std::max(chain.stage_mb(0, {0, cut}), chain.stage_mb(0, {cut, units})));
        const auto [least, most] = std::ranges::minmax(larger_mb);
        return {least, most};
    }
    // Of two ranks, whose units all take as long, with samples one by one: one worker, or, where
    // `asked` has none, all layouts.
    LayoutChoice layout(std::int64_t has_mb,
                        const AskedLayout& asked = {.workers = {{0, 1}}},
                        OptionValues values = {}) const {
        values.insert({{"task", "mnist"}, {"device", "cpu"}});
        RunSettings settings = set_up_ranks(
            world_, settle_options(world_, {values, {}}, builtin_parts()), builtin_parts());
        const auto ranks = static_cast<std::size_t>(world_.size());
        const std::vector<UnitCost> units(make_bert(bert_config("tiny"))->chain().size(),
                                          {.forward_ms = 1, .backward_ms = 2});
        const MeasuredRanks measured{.classes = {{{0, 1}}, {std::nullopt}},
                                     .links = std::vector(ranks, std::vector<LinkCost>(ranks)),
                                     .memory = memory(has_mb, /*saves=*/true),
                                     .trains_up_to = std::vector<bool>(units.size(), true),
                                     .tied = {},
                                     .optimizer_ms_per_mb = std::vector<double>(ranks, 0)};
        return best_layout(settings,
                           asked,
                           {{.micro_batch = 1, .micro_batches = 8, .batch = 8, .costs = units}},
                           {std::vector(ranks, units)},
                           measured);
    }

    HostComm world_ = test::world();
};

TEST_F(ChainMemoryTest, WhereNoLayoutFitsWithCopiesOneWithoutThemIsTaken) {
    if (world_.size() < 2)
        GTEST_SKIP() << "a worker of two ranks needs two";
    const std::size_t units = make_bert(bert_config("tiny"))->chain().size();
    const ChainMemory chain = memory(1000, /*saves=*/true);
    const auto has_mb = [&](double part_mb) {
        return static_cast<std::int64_t>((part_mb + chain.process_mb(0)) / 0.9) + 1;
    };
    const auto [least, most] = parts_mb(chain, units);
    const std::int64_t without = has_mb(parts_mb(chain.without_copies(), units).first);

    EXPECT_FALSE(layout(has_mb(most)).lends_to_checkpoints);
    EXPECT_LT(without, has_mb(least) - 10);
    EXPECT_TRUE(layout(without).lends_to_checkpoints);
    EXPECT_THROW(layout(without - 3), BadConfig);
}

TEST_F(ChainMemoryTest, ReplicasAreWeighedWithTheSharesThatTheyDeclare) {
    if (world_.size() != 2)
        GTEST_SKIP() << "the layouts are of two ranks";
    const std::size_t units = make_bert(bert_config("tiny"))->chain().size();
    for (const auto& [balance, most] : {std::pair{"equal", 4}, std::pair{"declared", 6}}) {
        const LayoutChoice choice =
            layout(1000, {}, {{"balance", balance}, {"max-sentences", "0=6,1=2"}});

        const auto found = std::ranges::find(
            choice.compared, "data parallelism on all 2 ranks", &ComparedLayout::name);
        ASSERT_NE(found, choice.compared.end());
        EXPECT_NEAR(found->compute_ms, 3.0 * most * static_cast<double>(units), 1e-9) << balance;
    }
}

TEST_F(ChainMemoryTest, ATiedParameterCountsOnceInAStageAndInEachOfTwo) {
    const ChainMemory chain = memory(1000, /*saves=*/false);
    const std::size_t units = make_bert(bert_config("tiny"))->chain().size();

    const double all = chain.stage_mb(0, {0, units});
    const double halves = chain.stage_mb(0, {0, 1}) + chain.stage_mb(0, {1, units});

    const NamedTensors parameters = make_bert(bert_config("tiny"))->named_parameters();
    const auto tied_elements =
        static_cast<double>(parameters["bert.embeddings.word_embeddings.weight"].numel());
    constexpr double held = 16, received = 4;  // bytes, of values to state; the other's gradients
    EXPECT_NEAR(halves - all, (held + 2 * received) * tied_elements / (1 << 20), 0.01);
}

TEST_F(ChainMemoryTest, CheckpointsAddACopyOfValuesAndState) {
    const std::size_t units = make_bert(bert_config("tiny"))->chain().size();
    const double without = memory(1000, false).stage_mb(0, {0, units});

    const double with = memory(1000, true).stage_mb(0, {0, units});

    EXPECT_NEAR(with / without, (16 + 12) / 16.0, 1e-9);
}

TEST_F(ChainMemoryTest, FrozenUnitsTakeTheirValuesAlone) {
    const ChainMemory trained = memory(1000, false), frozen = memory(1000, false, 2);

    const double layer_mb = trained.values_mb({1, 2});

    EXPECT_GT(layer_mb, 0);
    EXPECT_EQ(frozen.values_mb({1, 2}), 0);
    EXPECT_NEAR(frozen.stage_mb(0, {1, 2}), layer_mb, 0.01 * layer_mb);
    EXPECT_NEAR(frozen.stage_mb(0, {2, 3}), trained.stage_mb(0, {2, 3}), 1e-9);
}

TEST_F(ChainMemoryTest, AStageTakesNothingOfTheProcess) {
    const ChainMemory chain = memory(1000, false);

    EXPECT_EQ(chain.process_mb(0), 15);
    EXPECT_EQ(chain.stage_mb(0, {2, 2}), 0);
    EXPECT_EQ(chain.has_mb(0), 1000);
}

TEST_F(ChainMemoryTest, AStateThatIsCutIsAPartOnEachRank) {
    const ChainMemory chain = memory(1000, true);
    const UnitRange all{0, make_bert(bert_config("tiny"))->chain().size()};

    EXPECT_TRUE(chain.can_cut_state());
    EXPECT_NEAR(chain.sharded_mb(0, 1), chain.stage_mb(0, all), 1e-9);
    // Adam's two tensors, and checkpoints' copies of them.
    EXPECT_NEAR(
        chain.stage_mb(0, all) - chain.sharded_mb(0, 4), 4 * 3 / 4.0 * chain.values_mb(all), 1e-6);
}

TEST(LayoutChoiceTest, ItsTextIsReadAgain) {
    LayoutChoice choice{.ranks = {1, 3},
                        .micro_batches = {8, 0},
                        .shards_state = true,
                        .lends_to_checkpoints = true};
    choice.compared = {{"data parallelism on 2 ranks", 2, 10.5, 9, 1, 0.25, ""},
                       {"one worker of all 4 ranks", 4, 20, 20, 0, 1.5, "memory"}};
    choice.pipelines = PipelineLayout{.workers = {given_worker({3, 1}, {2, 5}, 4, 1)}, .batch = 64};
    WorkerLayout& worker = choice.pipelines->workers.front();
    worker.predicted_ms = 9.25;
    worker.activations_mb = {7, 2.5};
    worker.cost = StepCost{.micro_batch = 4, .table = StepTable({{4, 3}, {8, 5.5}})};

    const LayoutChoice read = parse_layout_choice(layout_choice_json(choice));

    EXPECT_EQ(layout_choice_json(read), layout_choice_json(choice));
    EXPECT_THAT(read.ranks, ElementsAre(1, 3));
    EXPECT_THAT(read.micro_batches, ElementsAre(8, 0));
    EXPECT_TRUE(read.lends_to_checkpoints);
    ASSERT_TRUE(read.pipelines);
    EXPECT_THAT(read.pipelines->workers.front().cut.most_in_flight, ElementsAre(3, 1));
    EXPECT_EQ(read.pipelines->workers.front().cost->time_ms(12), 8.5);
    EXPECT_EQ(read.compared.at(1).why_not, "memory");
}

}  // namespace
}  // namespace hetseq
