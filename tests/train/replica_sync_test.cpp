#include "hetseq/train/replica_sync.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/optim/flat_parameters.hpp"

#include "model/mixed_model.hpp"
#include "test_world.hpp"

namespace hetseq::test {
namespace {

TEST(ReplicaSyncTest, AllRanksStartFromRankZerosModel) {
    const HostComm ranks = world();
    const auto communicator = make_communicator(ranks, environment(), at::kCPU);
    MixedModel first, own(ranks.rank());
    own.trained.detach().mul_(1 + ranks.rank());
    FlatParameters parameters(own, [](const std::string&) { return true; });
    ASSERT_EQ(stored_alike(own, first), ranks.rank() == 0);

    share_model(*communicator, parameters, own);

    EXPECT_TRUE(stored_alike(own, first));
}

// What a model stores need not be contiguous.
TEST(ReplicaSyncTest, ATensorWithGapsIsSharedToo) {
    struct Strided : MixedModel {
        explicit Strided(std::int64_t shift) : columns{(at::arange(12) + shift).view({3, 4})} {
            register_buffer("columns", columns.slice(1, 0, 4, 2));
        }
        at::Tensor columns;
    };
    const HostComm ranks = world();
    const auto communicator = make_communicator(ranks, environment(), at::kCPU);
    const Strided first(0);
    Strided own(100 * ranks.rank());
    FlatParameters parameters(own, [](const std::string&) { return true; });

    share_model(*communicator, parameters, own);

    EXPECT_TRUE(own.named_buffers()["columns"].equal(first.named_buffers()["columns"]));
    EXPECT_EQ(own.columns[0][1].item<std::int64_t>(), 1 + 100 * ranks.rank());
}

}  // namespace
}  // namespace hetseq::test
