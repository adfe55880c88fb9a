#include "hetseq/train/pipeline/stage.hpp"

#include <gtest/gtest.h>

#include "hetseq/train/pipeline/shared_parameters.hpp"
#include "hetseq/train/worker_map.hpp"

#include "model/chain_models.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

using testing::ElementsAre;

const ChainCut of_three{.units = {{0, 1}, {1, 3}, {3, 5}}, .most_in_flight = {3, 2, 0}};
const std::vector<int> ranks_of_three{4, 0, 2};

TEST(StageOfTest, NeighboursAreThoseOfTheListOfRanks) {
    const auto model = untied_bert();

    const Stage first = stage_of(*model, of_three, ranks_of_three, 0);
    const Stage middle = stage_of(*model, of_three, ranks_of_three, 1);
    const Stage last = stage_of(*model, of_three, ranks_of_three, 2);

    EXPECT_TRUE(first.is_first() && !first.is_last());
    EXPECT_EQ(first.next, 0);
    EXPECT_EQ(middle.previous, 4);
    EXPECT_EQ(middle.next, 2);
    EXPECT_TRUE(last.is_last() && !last.is_first());
    EXPECT_EQ(middle.units, (UnitRange{1, 3}));
    EXPECT_EQ(middle.number, 1U);
    EXPECT_EQ(middle.stages, 3U);
    EXPECT_EQ(middle.most_in_flight, 2U);
    EXPECT_EQ(last.most_in_flight, 1U);  // none at all would never end
}

TEST(StageOfTest, GradientsGoToWhereSomethingIsTrained) {
    const auto trained = untied_bert();
    const auto frozen = make_bert_sequence_classifier(
        chain_bert_config(), {.labels = {"A", "B"}, .frozen_layers = 1});  // units 0 and 1
    const ChainCut cut{.units = {{0, 1}, {1, 2}, {2, 5}}, .most_in_flight = {3, 2, 1}};
    const auto stage = [&](const Model& model, std::size_t number) {
        return stage_of(model, cut, {0, 1, 2}, number);
    };

    EXPECT_FALSE(stage(*trained, 0).sends_gradients);  // to nobody
    EXPECT_TRUE(stage(*trained, 0).gets_gradients);
    EXPECT_TRUE(stage(*trained, 1).sends_gradients);
    EXPECT_TRUE(stage(*trained, 2).sends_gradients);
    EXPECT_FALSE(stage(*trained, 2).gets_gradients);  // from nobody
    for (const std::size_t number : {0, 1, 2}) {
        EXPECT_FALSE(stage(*frozen, number).sends_gradients) << number;
        EXPECT_FALSE(stage(*frozen, number).gets_gradients) << number;
    }
    EXPECT_TRUE(stage_of(*frozen, {.units = {{0, 3}, {3, 5}}, .most_in_flight = {2, 1}}, {0, 1}, 0)
                    .gets_gradients);
}

TEST(ParameterHoldersTest, ATiedParameterIsHeldByItsStagesTheFirstOfWhichSpeaks) {
    ParameterHolders holders;
    add_holders(*tied_bert(), of_three, ranks_of_three, holders);

    EXPECT_THAT(holders.at("bert.embeddings.word_embeddings.weight"), ElementsAre(4, 2));
    EXPECT_THAT(holders.at("bert.encoder.layer.0.output.dense.weight"), ElementsAre(0));
    for (const auto& [name, parameter] : tied_bert()->named_parameters())
        EXPECT_EQ(holders.count(name), 1U) << name;
}

// Twice in one stage is once.
TEST(ParameterHoldersTest, AStageHoldsAParameterOnce) {
    ParameterHolders holders;
    add_holders(*tied_bert(), {.units = {{0, 5}}, .most_in_flight = {1}}, {0}, holders);

    for (const auto& [name, ranks] : holders)
        EXPECT_THAT(ranks, ElementsAre(0)) << name;
}

TEST(ParameterHoldersTest, TheFirstWorkersRanksSpeak) {
    ParameterHolders holders;
    add_holders(*tied_bert(), of_three, ranks_of_three, holders);

    add_holders(*tied_bert(), {.units = {{0, 5}}, .most_in_flight = {1}}, {1}, holders);

    EXPECT_THAT(holders.at("bert.embeddings.word_embeddings.weight"), ElementsAre(4, 2, 1));
    EXPECT_THAT(holders.at("bert.encoder.layer.0.output.dense.weight"), ElementsAre(0, 1));
}

TEST(WorkerMapTest, AWorkersRanksLoadItsLeadersSlice) {
    const WorkerMap workers(std::vector<std::vector<int>>{{2, 0}, {1, 3}});

    const std::vector<Slice> loaded = workers.loaded({{0, 0}, {0, 5}, {5, 9}, {9, 9}});

    EXPECT_EQ(workers.leader_of(0), 2);
    EXPECT_TRUE(workers.leads(2) && workers.leads(1));
    EXPECT_FALSE(workers.leads(0) || workers.leads(3));
    for (const int rank : {0, 2})
        EXPECT_EQ(loaded[static_cast<std::size_t>(rank)].end, 9);
    for (const int rank : {1, 3})
        EXPECT_EQ(loaded[static_cast<std::size_t>(rank)].end, 5);
}

TEST(WorkerMapTest, RanksMayBeWorkersOfTheirOwn) {
    const WorkerMap workers(3);

    for (int rank = 0; rank < 3; ++rank)
        EXPECT_TRUE(workers.leads(rank));
    EXPECT_EQ(workers.loaded({{0, 1}, {1, 1}, {1, 4}})[2].begin, 1);
}

}  // namespace
}  // namespace hetseq::test
