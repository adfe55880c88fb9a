// One update of two pipelines: what goes wrong in one of them.
#include <cmath>
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/train/update_step.hpp"

#include "test_world.hpp"
#include "train/pipeline/staged_replica.hpp"

namespace hetseq::test {
namespace {

constexpr std::int64_t first_samples = 4, second_samples = 6;
const ForwardContext third_update{Mode::train, 5, 2};

// Samples [0, 4) are the first worker's, [4, 10) the second's.
class WorkersStepTest : public testing::Test {
protected:
    WorkersStepTest() {
        for (int rank = 0; rank < world_.size(); ++rank)
            (rank < ranks_of_first() ? first_ : second_).push_back(rank);
        const auto cuts_of = [&](const std::vector<int>& ranks) {
            return all_cuts(staged_.chain_length(), ranks.size());
        };
        staged_.units = cuts_of(first_).front();
        staged_.ranks = first_;
        staged_.others = {{cuts_of(second_).back(), second_}};
    }
    int ranks_of_first() const { return world_.size() - world_.size() / 2; }
    bool is_in_second() const { return world_.rank() >= ranks_of_first(); }
    Slice own_slice() const {
        return is_in_second() ? Slice{first_samples, first_samples + second_samples}
                              : Slice{0, first_samples};
    }
    std::vector<double> weights() const {
        return share_of(staged_.model, first_samples + second_samples, 2).weights();
    }
    // Of one rank alone.
    std::map<std::string, at::Tensor> expected() const {
        StagedReplica whole(staged_.whole(), HostComm::serial());
        UpdateStep step(whole.pass(), whole.parameters(), whole.reducer());
        LoadedShare share = share_of(staged_.model, first_samples + second_samples, 2);
        EXPECT_EQ(step.run(share, weights(), third_update), Verdict::apply);
        return whole.gradients();
    }
    static void expect_near(const std::map<std::string, at::Tensor>& found,
                            const std::map<std::string, at::Tensor>& expected) {
        for (const auto& [name, gradient] : found) {
            const at::Tensor& right = expected.at(name);
            const double scale = right.abs().max().item<double>();
            EXPECT_LE((gradient - right).abs().max().item<double>(), 1e-12 * scale) << name;
        }
    }

    HostComm world_ = test::world();
    std::vector<int> first_, second_;
    StagedCase staged_{.model = model_named("TiedBert"), .precision = Precision::fp64};
};

TEST_F(WorkersStepTest, GradientsLossesAndNormAreThoseOfOneRank) {
    StagedReplica whole(staged_.whole(), HostComm::serial());
    UpdateStep alone(whole.pass(), whole.parameters(), whole.reducer());
    LoadedShare all = share_of(staged_.model, first_samples + second_samples, 2);
    alone.run(all, weights(), third_update);
    StagedReplica replica(staged_, world_);
    UpdateStep step(replica.pass(), replica.parameters(), replica.reducer());
    LoadedShare share = share_of(staged_.model, own_slice(), 2);

    EXPECT_EQ(step.run(share, weights(), third_update), Verdict::apply);

    expect_near(replica.gradients(), whole.gradients());
    EXPECT_NEAR(step.gradient_norm(), alone.gradient_norm(), 1e-12 * alone.gradient_norm());
    for (std::size_t j = 0; j < alone.losses().size(); ++j)
        EXPECT_NEAR(step.losses()[j], alone.losses()[j], 1e-12);
}

// In the last backward some buckets are on their way to the other worker.
TEST_F(WorkersStepTest, OnlyTheWorkerThatLacksMemoryTakesSmallerMicroBatches) {
    const auto right = expected();
    for (int failing = 0; failing < world_.size(); ++failing)
        for (const int backwards_before : {0, 1}) {
            SCOPED_TRACE(std::to_string(failing) + " " + std::to_string(backwards_before));
            StagedReplica replica(staged_, world_);
            UpdateStep step(replica.pass(), replica.parameters(), replica.reducer());
            LoadedShare share = share_of(staged_.model, own_slice(), 2);
            int left = backwards_before;
            bool has_failed = world_.rank() != failing;
            replica.parameters().parameters().back().tensor.register_hook(
                [&](const at::Tensor& gradient) -> at::Tensor {
                    if (!has_failed && left-- == 0) {
                        has_failed = true;
                        throw std::bad_alloc();
                    }
                    return gradient;
                });

            EXPECT_EQ(step.run(share, weights(), third_update), Verdict::apply);

            const bool lacked = is_in_second() == (failing >= ranks_of_first());
            EXPECT_EQ(step.reduced_cap().has_value(), lacked);
            expect_near(replica.gradients(), right);
        }
}

TEST_F(WorkersStepTest, AGradientThatIsNotFiniteIsSkippedByAllAndNamedByItsWorker) {
    for (int bad = 0; bad < world_.size(); ++bad) {
        SCOPED_TRACE(bad);
        StagedReplica replica(staged_, world_);
        UpdateStep step(replica.pass(), replica.parameters(), replica.reducer());
        LoadedShare share = share_of(staged_.model, own_slice(), 2);
        if (world_.rank() == bad)
            replica.parameters().parameters().front().tensor.register_hook(
                [&](const at::Tensor& gradient) {
                    return replica.pass().at_work() == 1 ? gradient * NAN : gradient;
                });

        EXPECT_EQ(step.run(share, weights(), third_update), Verdict::skip_gradient);

        const std::vector<std::int64_t> samples =
            step.non_finite_gradient_samples(share, third_update);
        const bool names = is_in_second() == (bad >= ranks_of_first()) && replica.stage().is_last();
        EXPECT_EQ(samples.size(), names ? 2U : 0U);
        if (names) {
            EXPECT_EQ(samples.front(), own_slice().begin + 2);
        }
    }
}

}  // namespace
}  // namespace hetseq::test
