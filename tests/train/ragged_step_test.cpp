#include <algorithm>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/update_step.hpp"

#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"
#include "train/pair_model.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

using Fits = std::function<bool(const MicroBatch&)>;
enum class Pass { forward, backward };

// A device on which some micro-batches do not fit, in the forward, or in the backward when the
// other parameters' buckets have left. It allows 300 tries.
class SmallDevice final : public Model {
public:
    SmallDevice(std::shared_ptr<PairModel> model, Fits fits, Pass fails_in)
        : model_{register_module("model", std::move(model))},
          fits_{std::move(fits)},
          fails_in_{fails_in} {
        model_->named_parameters()["embedding"].register_hook([this](const at::Tensor& gradient) {
            if (!does_fit_)
                throw std::bad_alloc();
            return gradient;
        });
    }

    std::vector<std::string> loss_terms() const override { return model_->loss_terms(); }
    std::vector<MetricSchema> metrics() const override { return model_->metrics(); }
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        if (++tries_ > 300)
            throw std::runtime_error("it is tried for ever");
        does_fit_ = fits_(batch);
        if (fails_in_ == Pass::forward && !does_fit_)
            throw std::bad_alloc();
        return model_->forward(batch, context);
    }

private:
    std::shared_ptr<PairModel> model_;
    Fits fits_;
    Pass fails_in_;
    bool does_fit_ = true;
    int tries_ = 0;
};

Fits no_more_tokens_than(std::int64_t most) {
    return [=](const MicroBatch& batch) { return batch.padded_tokens <= most; };
}

// Many short samples fit, and not a single long one.
Fits no_rows_above(std::int64_t longest) {
    return [=](const MicroBatch& batch) { return batch.padded_tokens <= longest * batch.samples; };
}

// Pairs of the schema, of up to 40 words.
void write_pairs(const std::string& path, std::int64_t samples) {
    const auto length = [](std::int64_t row) { return 1 + row * 7 % 40; };
    const auto word = [](std::int64_t row, std::int64_t column) {
        return (row * 31 + column * 5) % words;
    };
    std::vector<FilledDataset> datasets =
        ragged_datasets({"source", H5T_STD_I32LE, length, word}, samples, 0);
    for (FilledDataset& dataset :
         ragged_datasets({"target", H5T_STD_I32LE, length, word}, samples, 0))
        datasets.push_back(std::move(dataset));
    write_datasets(path, datasets);
}

class RaggedStepTest : public testing::Test {
protected:
    RaggedStepTest() {
        agree_on(world_, [&] {
            if (world_.rank() == 0)
                write_pairs(folder_ / "pairs.h5", 60);
        });
    }

    struct Result {
        at::Tensor gradients;
        std::optional<MicroBatchCap> reduced;
        std::size_t micro_batches = 0;
        std::int64_t largest = 0;  // of them [padded tokens]
    };

    // One update of all ranks but the second.
    static Result update(const HostComm& world,
                         const std::string& data,
                         const Fits& fits,
                         Pass fails_in = Pass::forward,
                         const MicroBatchCap& cap = {}) {
        const auto communicator = make_communicator(world, environment(), at::kCPU);
        DataContext context(world, environment().thread_support() == ThreadSupport::multiple);
        SmallDevice model(std::make_shared<PairModel>(8, 0.2), fits, fails_in);
        initialise_parameters(model, 4);
        model.to(at::kDouble);
        FlatParameters parameters(model, [](const std::string&) { return true; });
        Corpus corpus(
            context, data, pair_schema(), {.shuffle_blocks = 2, .block_length = 16, .cache_mb = 4});
        const PairCollator collator;
        Loader loader(corpus, collator, {.seed = 6, .loss_terms = 1});
        const BatchPlan plan = make_batch_plan(corpus, {.units = 600}, 6);
        const GlobalBatch batch = plan.batch(0);
        std::vector<std::int64_t> units(static_cast<std::size_t>(world.size()), 1);
        if (units.size() > 1)
            units[1] = 0;
        loader.request(batch, cut_by_rank(batch, units, ItemCost{}.of(*batch.items)), cap);
        LoadedShare share = loader.take();
        std::vector<double> weights = share.weights();
        world.all_reduce(std::span<double>(weights), ReduceOp::sum);
        GradientReducer reducer(parameters, *communicator, 1);
        const std::unique_ptr<hetseq::Pass> pass = make_whole_pass(model);
        UpdateStep step(*pass, parameters, reducer);
        EXPECT_EQ(step.run(share, weights, {Mode::train, 5, 3}), Verdict::apply);
        Result result{parameters.gradients().clone(), step.reduced_cap()};
        result.micro_batches = share.micro_batches().size();
        for (const MicroBatch& part : share.micro_batches())
            result.largest = std::max(result.largest, part.padded_tokens);
        return result;
    }

    HostComm world_ = test::world();
    SharedFolder folder_{world_};
};

TEST_F(RaggedStepTest, OutOfMemoryHalvesTheCapInTokensAndLeavesTheGradientAsItIs) {
    const Result whole = update(world_, folder_.path(), no_more_tokens_than(1'000'000));

    const Result halved = update(world_, folder_.path(), no_more_tokens_than(100));

    EXPECT_FALSE(whole.reduced.has_value());
    if (whole.micro_batches > 0) {
        ASSERT_TRUE(halved.reduced.has_value());
        EXPECT_LT(halved.reduced->tokens, whole.largest);
        EXPECT_LE(halved.largest, 100);
        EXPECT_EQ(halved.reduced->samples, MicroBatchCap::none);
        EXPECT_GT(halved.micro_batches, whole.micro_batches);
    }
    EXPECT_LT((halved.gradients - whole.gradients).abs().max().item<double>(), 1e-14);
    EXPECT_GT(whole.gradients.abs().max().item<double>(), 1e-4);
}

// The micro-batch of most samples is one of short ones, which fit.
TEST_F(RaggedStepTest, ASingleLongSampleThatDoesNotFitIsNamedAfterFewTries) {
    for (const Pass fails_in : {Pass::forward, Pass::backward}) {
        try {
            update(
                HostComm::serial(), folder_.path(), no_rows_above(20), fails_in, {.tokens = 130});
            ADD_FAILURE() << "it went on";
        } catch (const DeviceError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("does not hold a single sample, sample "));
            EXPECT_THAT(error.what(),
                        testing::ContainsRegex(" of (2[1-9]|3[0-9]|40) tokens \\(std::bad_alloc"));
            EXPECT_THAT(error.what(), testing::HasSubstr("--skip-too-long"));
        }
    }
}

// Short samples are cut by their number, also when tokens are halved.
TEST_F(RaggedStepTest, OutOfMemoryKeepsTheCapThatTheShareWasLoadedWith) {
    const Fits fits = [](const MicroBatch& batch) {
        EXPECT_LE(batch.samples, 4);
        return batch.padded_tokens <= 60;
    };

    const Result halved = update(
        HostComm::serial(), folder_.path(), fits, Pass::forward, {.samples = 4, .tokens = 130});

    EXPECT_TRUE(halved.reduced.has_value());
}

}  // namespace
}  // namespace hetseq::test
