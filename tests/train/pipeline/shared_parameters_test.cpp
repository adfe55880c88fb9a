#include "hetseq/train/pipeline/shared_parameters.hpp"

#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/replica_sync.hpp"

#include "test_world.hpp"
#include "train/pipeline/staged_replica.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

constexpr const char* tied_matrix = "bert.embeddings.word_embeddings.weight";

// BERT whose decoder has the embeddings' matrix: the first stage and the last hold it.
class SharedParametersTest : public testing::Test {
protected:
    SharedParametersTest() {
        staged_.units =
            all_cuts(staged_.chain_length(), static_cast<std::size_t>(world_.size())).front();
        replica_.emplace(staged_, world_);
    }
    bool holds() const { return world_.rank() == 0 || world_.rank() == world_.size() - 1; }
    FlatParameters& parameters() { return replica_->parameters(); }
    // Of `flat`, what belongs to the matrix; undefined where it is not held.
    at::Tensor matrix_in(const at::Tensor& flat) {
        for (const auto& parameter : parameters().parameters())
            if (parameter.name == tied_matrix)
                return flat.narrow(0, parameter.offset, parameter.numel);
        return {};
    }

    HostComm world_ = test::world();
    StagedCase staged_{.model = model_named("TiedBert")};
    std::optional<StagedReplica> replica_;
};

TEST_F(SharedParametersTest, OneHolderSpeaksForThem) {
    const auto& elsewhere = replica_->shared()->spoken_for_elsewhere();

    const bool speaks = world_.rank() == 0;
    EXPECT_EQ(elsewhere.size(), holds() && !speaks ? tied_names(staged_.model).size() : 0U);
}

TEST_F(SharedParametersTest, AGroupHasThoseThatTheSameRanksHold) {
    const SharedParameters& shared = *replica_->shared();
    const std::size_t of_matrix = shared.group_of(tied_matrix);
    const std::size_t of_first = shared.group_of("bert.embeddings.position_embeddings.weight");

    EXPECT_NE(of_matrix, of_first);
    EXPECT_EQ(shared.among(of_first), nullptr);
    ASSERT_EQ(shared.among(of_matrix) != nullptr, holds());
    if (holds()) {
        const at::Tensor number = at::full({1}, 1 + world_.rank(), at::kFloat);
        shared.among(of_matrix)->all_reduce_sum(number);
        EXPECT_EQ(number.item<double>(), 1 + world_.size());
    }
}

TEST_F(SharedParametersTest, AllHoldersGetTheValuesAndTheStateOfTheFirst) {
    const auto optimizer = make_adamw(parameters(), {});
    parameters().values().fill_(world_.rank());
    for (const auto& [name, state] : optimizer->state())
        if (state.dim() == 1)
            state.fill_(10 + world_.rank());

    replica_->shared()->copy_from_first(parameters(), optimizer.get());

    if (holds()) {
        EXPECT_TRUE(matrix_in(parameters().values()).eq(0).all().item<bool>());
        for (const auto& [name, state] : optimizer->state())
            if (state.dim() == 1) {
                EXPECT_TRUE(matrix_in(state).eq(10).all().item<bool>()) << name;
            }
    }
    EXPECT_TRUE(parameters().values().eq(world_.rank()).any().item<bool>());
}

// A checkpoint gives them to the first holder alone.
TEST_F(SharedParametersTest, AllHoldersGetWhatIsFrozenToo) {
    StagedCase frozen = staged_;
    frozen.model.make = [make = staged_.model.make] {
        const auto model = make();
        model->find_parameter(tied_matrix).set_requires_grad(false);
        return model;
    };
    StagedReplica replica{frozen, world_};
    const at::Tensor matrix = replica.model().find_parameter(tied_matrix);
    if (holds())
        matrix.fill_(world_.rank());

    replica.shared()->copy_frozen_from_first(replica.model());

    EXPECT_TRUE(!holds() || matrix.eq(0).all().item<bool>());
}

TEST_F(SharedParametersTest, TheyDriftByTheLargestDifferenceOfTheirCopies) {
    const int last = world_.size() - 1;
    const std::vector<std::string> like(static_cast<std::size_t>(world_.size()), "cpu");
    std::vector<std::string> unlike = like;
    unlike.back() = "another";
    const auto drift = [&](const std::vector<std::string>& devices) {
        return replica_->shared()->drift(world_, parameters(), devices);
    };
    EXPECT_EQ(drift(like).largest_difference, 0);
    EXPECT_TRUE(drift(like).is_within(0));
    if (world_.rank() == last)
        matrix_in(parameters().values()).select(0, 5).add_(0.25);

    EXPECT_NEAR(drift(like).largest_difference, 0.25, 1e-6);
    EXPECT_THAT(drift(like).odd_ranks, testing::ElementsAre(last));
    EXPECT_FALSE(drift(like).is_within(1));
    EXPECT_NE(drift(like).tensor, "");
    EXPECT_TRUE(drift(unlike).is_within(1));
}

}  // namespace
}  // namespace hetseq::test
