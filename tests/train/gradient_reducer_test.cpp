#include "hetseq/train/gradient_reducer.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/optim/flat_parameters.hpp"

#include "train/whole_sums.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One rank of two that hold the same: records what starts, and doubles it when waited for.
class RecordingCommunicator final : public test::WholeSums {
public:
    struct Start {
        std::int64_t offset = 0;  // elements, in the storage
        std::int64_t numel = 0;
        friend bool operator==(const Start&, const Start&) = default;
    };

    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 2; }
    at::Device device() const noexcept override { return at::kCPU; }
    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        if (tensor.storage_offset() == failing_offset)
            throw std::runtime_error("out of memory");
        starts.push_back({tensor.storage_offset(), tensor.numel()});
        return std::make_unique<Doubling>(tensor);
    }
    void broadcast(at::Tensor, int) override {}

    std::vector<Start> starts;
    std::int64_t failing_offset = -1;  // of the tensor whose reduction does not start

private:
    class Doubling final : public Work {
    public:
        explicit Doubling(at::Tensor tensor) : tensor_{std::move(tensor)} {}
        void wait() override { tensor_.mul_(2); }
        bool done() override { return true; }
        double own_ms() override { return 3; }

    private:
        at::Tensor tensor_;
    };
};

/// Three parameters in a chain x * third * second * first, and one that is never used. In layout
/// order, from the last registered: third, second, unused, first; each padded to 8 elements.
struct Chain : TensorRegistry {
    Chain() {
        const auto options = at::TensorOptions(at::kDouble);
        first = register_parameter("first", at::full({3}, 5, options));
        unused = register_parameter("unused", at::ones({3}, options));
        second = register_parameter("second", at::full({3}, 3, options));
        third = register_parameter("third", at::full({3}, 2, options));
    }
    at::Tensor loss() const { return (at::ones({3}, at::kDouble) * third * second * first).sum(); }
    // Backward reaches `third` first.
    at::Tensor loss_in_layout_order() const {
        return (at::ones({3}, at::kDouble) * first * second * third).sum();
    }

    at::Tensor first, unused, second, third;
};

using Start = RecordingCommunicator::Start;
const Start third_bucket{0, 8}, second_bucket{8, 8}, unused_bucket{16, 8}, first_bucket{24, 8};
const Start status_behind{0, 2};

class GradientReducerTest : public testing::Test {
protected:
    GradientReducerTest() { make_reducer(1); }

    void finish() {
        reducer_->start_rest(status_);
        reducer_->finish();
    }

    void make_reducer(std::int64_t bucket_bytes) {
        reducer_.reset();
        reducer_ = std::make_unique<GradientReducer>(flat_, communicator_, bucket_bytes);
    }
    // Records what had started when `parameter`'s gradient was about to be accumulated.
    void observe(const at::Tensor& parameter, std::vector<Start>& starts) {
        parameter.register_hook([&](const at::Tensor& gradient) {
            starts = communicator_.starts;
            return gradient;
        });
    }
    const std::vector<Start>& starts() const { return communicator_.starts; }

    Chain chain_;
    FlatParameters flat_{chain_, [](const std::string&) { return true; }};
    at::Tensor status_ = at::ones({2}, at::kDouble);
    RecordingCommunicator communicator_;
    std::unique_ptr<GradientReducer> reducer_;
};

TEST_F(GradientReducerTest, WithoutArmingNothingStarts) {
    chain_.loss().backward();

    EXPECT_THAT(starts(), IsEmpty());
    EXPECT_FALSE(reducer_->started());
}

TEST_F(GradientReducerTest, BucketsStartAsTheirGradientsBecomeReady) {
    std::vector<Start> at_second, at_first;
    observe(chain_.second, at_second);
    observe(chain_.first, at_first);

    reducer_->arm();
    chain_.loss_in_layout_order().backward();

    EXPECT_THAT(at_second, ElementsAre(third_bucket));
    EXPECT_THAT(at_first, ElementsAre(third_bucket, second_bucket));
}

TEST_F(GradientReducerTest, ABucketThatIsReadyEarlyWaitsForItsPredecessors) {
    std::vector<Start> at_second, at_third;
    observe(chain_.second, at_second);
    observe(chain_.third, at_third);

    reducer_->arm();
    chain_.loss().backward();  // first, second, third

    EXPECT_THAT(at_second, IsEmpty());
    EXPECT_THAT(at_third, IsEmpty());
    EXPECT_THAT(starts(), ElementsAre(third_bucket, second_bucket));
}

TEST_F(GradientReducerTest, FinishStartsTheRestInOrder) {
    reducer_->arm();
    chain_.loss().backward();

    finish();

    EXPECT_THAT(
        starts(),
        ElementsAre(third_bucket, second_bucket, unused_bucket, first_bucket, status_behind));
}

TEST_F(GradientReducerTest, ARankWithoutWorkStartsTheSameBuckets) {
    finish();

    EXPECT_THAT(
        starts(),
        ElementsAre(third_bucket, second_bucket, unused_bucket, first_bucket, status_behind));
}

TEST_F(GradientReducerTest, FinishWaitsForEveryBucket) {
    reducer_->arm();
    chain_.loss().backward();

    finish();

    // d loss / d first = 2 * 3, d second = 2 * 5, d third = 3 * 5; summed over two equal ranks.
    EXPECT_TRUE((chain_.first.grad() == 12).all().item<bool>());
    EXPECT_TRUE((chain_.second.grad() == 20).all().item<bool>());
    EXPECT_TRUE((chain_.third.grad() == 30).all().item<bool>());
    EXPECT_TRUE((status_ == 2).all().item<bool>());
    EXPECT_DOUBLE_EQ(reducer_->timing().last_bucket_ms, 3 + 3);
    EXPECT_DOUBLE_EQ(reducer_->timing().buckets_ms, 5 * 3);
}

TEST_F(GradientReducerTest, EachUpdateStartsAnew) {
    for (int update = 0; update < 2; ++update) {
        communicator_.starts.clear();
        chain_.loss().backward();  // a micro-batch that is not the last
        EXPECT_THAT(starts(), IsEmpty());
        reducer_->arm();
        chain_.loss().backward();
        EXPECT_THAT(starts(), ElementsAre(third_bucket, second_bucket));
        finish();
        EXPECT_FALSE(reducer_->started());
    }
}

TEST_F(GradientReducerTest, BucketsEndAtParametersAfterTheirBytes) {
    make_reducer(9 * 8);  // more than one parameter's 8 elements

    finish();

    EXPECT_EQ(reducer_->buckets(), 2u);
    EXPECT_THAT(starts(), ElementsAre(Start{0, 16}, Start{16, 16}, status_behind));
}

TEST_F(GradientReducerTest, ABucketWaitsForAllItsGradients) {
    make_reducer(9 * 8);
    std::vector<Start> at_second;
    observe(chain_.second, at_second);

    reducer_->arm();
    chain_.loss_in_layout_order().backward();

    EXPECT_THAT(at_second, IsEmpty());
    EXPECT_THAT(starts(), ElementsAre(Start{0, 16}));
}

// A bucket of two, one of which was ready, waits for both again.
TEST_F(GradientReducerTest, DisarmingForgetsWhatWasReady) {
    make_reducer(9 * 8);
    bool fails = true;
    std::vector<Start> at_third;
    chain_.third.register_hook([&](const at::Tensor& gradient) {
        if (fails)
            throw std::runtime_error("out of memory");
        at_third = starts();
        return gradient;
    });
    reducer_->arm();
    EXPECT_THROW(chain_.loss().backward(), std::exception);  // after `first` and `second`
    fails = false;

    reducer_->disarm();
    chain_.loss().backward();
    EXPECT_THAT(starts(), IsEmpty());
    reducer_->arm();
    chain_.loss().backward();

    EXPECT_THAT(at_third, IsEmpty());
    EXPECT_THAT(starts(), ElementsAre(Start{0, 16}));
}

TEST_F(GradientReducerTest, ZeroingSparesTheBucketsThatHaveLeft) {
    chain_.second.register_hook(
        [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("out of memory"); });
    flat_.gradients().fill_(7);
    reducer_->arm();
    EXPECT_THROW(chain_.loss_in_layout_order().backward(), std::exception);
    ASSERT_THAT(starts(), ElementsAre(third_bucket));

    reducer_->zero_unstarted();

    EXPECT_TRUE((flat_.gradients().narrow(0, 0, 3) == 7 + 5 * 3).all().item<bool>());
    EXPECT_TRUE((flat_.gradients().narrow(0, 8, 24) == 0).all().item<bool>());
    finish();
}

TEST_F(GradientReducerTest, ABucketThatCouldNotStartHasNotLeft) {
    flat_.gradients().fill_(7);
    communicator_.failing_offset = second_bucket.offset;
    reducer_->arm();
    EXPECT_THROW(chain_.loss_in_layout_order().backward(), std::exception);
    ASSERT_THAT(starts(), ElementsAre(third_bucket));
    communicator_.failing_offset = -1;

    reducer_->zero_unstarted();
    finish();

    EXPECT_THAT(
        starts(),
        ElementsAre(third_bucket, second_bucket, unused_bucket, first_bucket, status_behind));
    EXPECT_TRUE((flat_.gradients().narrow(0, 8, 24) == 0).all().item<bool>());
}

TEST_F(GradientReducerTest, WithoutItsFirstBucketNothingHasLeft) {
    communicator_.failing_offset = third_bucket.offset;
    reducer_->arm();
    EXPECT_THROW(chain_.loss_in_layout_order().backward(), std::exception);

    EXPECT_FALSE(reducer_->started());
    reducer_->disarm();
}

// Doubles at once what it is given.
class DoublingCommunicator final : public test::WholeSums {
public:
    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 2; }
    at::Device device() const noexcept override { return at::kCPU; }
    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        types.push_back(tensor.scalar_type());
        tensor.mul_(2);
        return std::make_unique<Nothing>();
    }
    void broadcast(at::Tensor, int) override {}

    std::vector<at::ScalarType> types;

private:
    struct Nothing final : Work {
        void wait() override {}
        bool done() override { return true; }
        double own_ms() override { return 0; }
    };
};

TEST_F(GradientReducerTest, GradientsMayBeSentInAnotherTypeAndTheStatusInItsOwn) {
    DoublingCommunicator doubling;
    reducer_.reset();
    GradientReducer reducer(flat_, doubling, 1, at::kBFloat16);
    for (int update = 0; update < 2; ++update) {
        flat_.gradients().zero_();
        reducer.arm();
        (chain_.loss() / 7).backward();
        const at::Tensor own = flat_.gradients().clone();
        at::Tensor seen;

        reducer.start_rest(status_);
        reducer.finish({.then = [&] { seen = flat_.gradients().clone(); }});

        EXPECT_TRUE(at::equal(seen, own.to(at::kBFloat16).to(at::kDouble) * 2));
        EXPECT_FALSE(at::equal(seen, own * 2));
    }
    EXPECT_EQ(std::count(doubling.types.begin(), doubling.types.end(), at::kBFloat16), 8);
    EXPECT_EQ(doubling.types.back(), at::kDouble);
    EXPECT_EQ(flat_.gradients().scalar_type(), at::kDouble);
}

TEST_F(GradientReducerTest, ItsHooksAreGoneWithIt) {
    const auto hook_of = [](const at::Tensor& parameter) {
        return torch::autograd::impl::post_acc_grad_hooks(parameter).get();
    };
    for (const auto& parameter : flat_.parameters())
        ASSERT_NE(hook_of(parameter.tensor), nullptr);
    reducer_->arm();

    reducer_.reset();

    for (const auto& parameter : flat_.parameters())
        EXPECT_EQ(hook_of(parameter.tensor), nullptr) << parameter.name;
    chain_.loss().backward();
    EXPECT_THAT(starts(), IsEmpty());
}

}  // namespace
}  // namespace hetseq
