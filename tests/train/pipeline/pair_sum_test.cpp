#include "hetseq/train/pipeline/pair_sum.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"

#include "test_world.hpp"

namespace hetseq::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t block = 64;

// (n), none zero.
at::Tensor dense(std::int64_t n, double seed) {
    return at::arange(1, n + 1).mul(seed).sin();
}

// (number * block + rest) of zeros, but for these blocks and the rest.
at::Tensor sparse(std::int64_t number,
                  const std::vector<std::int64_t>& filled,
                  std::int64_t rest = 0) {
    const at::Tensor values = at::zeros({number * block + rest});
    for (const std::int64_t i : filled)
        values.narrow(0, i * block, block).copy_(dense(block, static_cast<double>(i + 1)));
    values.narrow(0, number * block, rest).copy_(dense(rest, 0.5));
    return values;
}

// The first rank and the last one sum; others look on.
class PairSumTest : public testing::Test {
protected:
    PairSumTest() : is_first_{world_.rank() == 0}, sums_{is_first_ || other() == 0} {
        channel_.emplace(world_,
                         sums_ ? std::vector<int>{other()} : std::vector<int>{},
                         at::kCPU,
                         environment().thread_support(),
                         PeerChannel::Options{.deadline = 20s});
        if (sums_)
            pair_.emplace(*channel_, other());
    }
    int other() const { return is_first_ ? world_.size() - 1 : world_.size() - 1 - world_.rank(); }
    PairSum& pair() { return *pair_; }
    at::Tensor own(const at::Tensor& of_first, const at::Tensor& of_last) const {
        return (is_first_ ? of_first : of_last).clone();
    }
    // Both have all bits of the sum.
    void expect_sum(const at::Tensor& of_first, const at::Tensor& of_last) {
        if (!sums_)
            return;
        const at::Tensor tensor = own(of_first, of_last);
        pair().start(tensor)->wait();
        EXPECT_TRUE(tensor.view(at::kByte).equal((of_first + of_last).view(at::kByte)));
    }

    HostComm world_ = test::world();
    bool is_first_, sums_;
    std::optional<PeerChannel> channel_;
    std::optional<PairSum> pair_;
};

TEST_F(PairSumTest, BothHaveTheSumOfAllElements) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf})
        for (const std::int64_t n : {std::int64_t{1}, block, 5 * block, 1000 * block + 17})
            expect_sum(dense(n, 0.7).to(type), dense(n, 1.3).to(type));
}

TEST_F(PairSumTest, EitherOrBothMayBeMostlyZeros) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
        const at::Tensor few = sparse(40, {0, 7, 39}, 5).to(type);
        const at::Tensor others = sparse(40, {7, 8}, 5).to(type);
        const at::Tensor all = dense(40 * block + 5, 0.3).to(type);
        const at::Tensor none = at::zeros({40 * block + 5}, type);
        for (const at::Tensor& first : {few, all, none})
            for (const at::Tensor& last : {others, all, none})
                expect_sum(first, last);
    }
}

TEST_F(PairSumTest, NegativeZerosKeepTheirBits) {
    const at::Tensor negative = at::full({20 * block}, -0.0);
    expect_sum(negative, negative);
    expect_sum(negative, sparse(20, {3}));
}

TEST_F(PairSumTest, BlocksOfZerosDoNotTravel) {
    if (!sums_)
        GTEST_SKIP() << "it sums nothing";
    const at::Tensor tensor = own(sparse(1000, {1, 500}), dense(1000 * block, 0.3));
    static_cast<void>(channel_->take_traffic());

    pair().start(tensor)->wait();

    channel_->wait_for_sends();
    const std::int64_t bytes = channel_->take_traffic().bytes_sent;
    EXPECT_EQ(bytes, is_first_ ? 2 * (block * 4 + 4) : 1000 * block * 4);
}

TEST_F(PairSumTest, ASummandTravelsBeforeTheOtherIsThere) {
    const at::Tensor first = sparse(4000, {2}), last = dense(4000 * block, 0.3);
    const at::Tensor tensor = own(first, last);
    std::unique_ptr<Work> work;
    if (sums_ && !is_first_) {
        work = pair().start(tensor);
        channel_->wait_for_sends();  // ends, though the first has not begun
        EXPECT_FALSE(work->done());
    }
    world_.barrier();
    if (is_first_)
        work = pair().start(tensor);
    if (sums_) {
        work->wait();
        EXPECT_TRUE(work->done());
        EXPECT_GT(work->own_ms(), 0);
        EXPECT_TRUE(tensor.equal(first + last));
    }
}

// A channel takes in eight messages that nobody has received.
TEST_F(PairSumTest, ManyMayBeUnderWay) {
    if (!sums_)
        GTEST_SKIP() << "it sums nothing";
    constexpr std::int64_t most = 30;
    for (const bool are_dense : {true, false}) {
        std::vector<at::Tensor> tensors, sums;
        std::vector<std::unique_ptr<Work>> works;
        for (std::int64_t i = 1; i <= most; ++i) {
            const at::Tensor first = are_dense ? dense(i * block, 0.3) : sparse(i, {i - 1});
            const at::Tensor last = dense(i * block, 0.1);
            sums.push_back(first + last);
            tensors.push_back(own(first, last));
            works.push_back(pair().start(tensors.back()));
        }
        for (const std::unique_ptr<Work>& work : works)
            work->wait();

        for (std::size_t i = 0; i < tensors.size(); ++i)
            EXPECT_TRUE(tensors[i].equal(sums[i])) << i;
    }
}

// Each from the end of the one before.
TEST_F(PairSumTest, OwnTimesDoNotOverlap) {
    if (!sums_)
        GTEST_SKIP() << "it sums nothing";
    const double begin_s = monotonic_seconds();
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 5; ++i)
        works.push_back(pair().start(dense(1000 * block, 0.3)));
    double sum_ms = 0;
    for (const std::unique_ptr<Work>& work : works) {
        work->wait();
        sum_ms += work->own_ms();
    }

    EXPECT_LE(sum_ms, 1000 * (monotonic_seconds() - begin_s));
}

TEST(SentPartTest, ItIsThatOfTheBlocksThatAreNotZero) {
    EXPECT_EQ(sent_part(sparse(100, {1, 2, 99})), 0.03);
    EXPECT_EQ(sent_part(at::zeros({10 * block})), 0);
    EXPECT_EQ(sent_part(dense(10 * block, 0.3)), 1);
    EXPECT_EQ(sent_part(sparse(4, {0, 1, 2})), 1);  // packing is not worth its indices
    EXPECT_EQ(sent_part(dense(block - 1, 0.3)), 1);
}

}  // namespace
}  // namespace hetseq::test
