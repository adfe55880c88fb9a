#include <new>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/generated_ragged_corpus.hpp"

#include "hetseq/comm/communicator.hpp"

#include "test_world.hpp"
#include "train/pair_model.hpp"

#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/update_step.hpp"

namespace hetseq::test {
namespace {

// A device on which micro-batches of more than `most` padded tokens do not fit.
class SmallDevice final : public Model {
public:
    SmallDevice(std::shared_ptr<PairModel> model, std::int64_t most)
        : model_{register_module("model", std::move(model))}, most_{most} {}

    std::vector<std::string> loss_terms() const override { return model_->loss_terms(); }
    std::vector<MetricSchema> metrics() const override { return model_->metrics(); }
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        if (batch.padded_tokens > most_)
            throw std::bad_alloc();
        return model_->forward(batch, context);
    }

private:
    std::shared_ptr<PairModel> model_;
    std::int64_t most_;
};

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

    // One update of all ranks but the second, on devices that hold `most` padded tokens.
    Result update(std::int64_t most) {
        const auto communicator = make_communicator(world_, environment(), at::kCPU);
        DataContext context(world_, environment().thread_support() == ThreadSupport::multiple);
        SmallDevice model(std::make_shared<PairModel>(8, 0.2), most);
        initialise_parameters(model, 4);
        model.to(at::kDouble);
        FlatParameters parameters(model, [](const std::string&) { return true; });
        Corpus corpus(context,
                      folder_.path(),
                      pair_schema(),
                      {.shuffle_blocks = 2, .block_length = 16, .cache_mb = 4});
        const PairCollator collator;
        Loader loader(corpus, collator, {.seed = 6, .loss_terms = 1});
        const BatchPlan plan = make_batch_plan(corpus, {.units = 600}, 6);
        const GlobalBatch batch = plan.batch(0);
        std::vector<std::int64_t> units(static_cast<std::size_t>(world_.size()), 1);
        if (units.size() > 1)
            units[1] = 0;
        loader.request(batch, cut_by_rank(batch, units, ItemCost{}.of(*batch.items)), {});
        LoadedShare share = loader.take();
        std::vector<double> weights = share.weights();
        world_.all_reduce(std::span<double>(weights), ReduceOp::sum);
        GradientReducer reducer(parameters, *communicator, 1);
        UpdateStep step(model, parameters, reducer);
        EXPECT_EQ(step.run(share, weights, {Mode::train, 5, 3}), Verdict::apply);
        return {parameters.gradients().clone(),
                step.reduced_cap(),
                share.micro_batches().size(),
                share.largest_micro_batch().tokens};
    }

    HostComm world_ = test::world();
    SharedFolder folder_{world_};
};

TEST_F(RaggedStepTest, OutOfMemoryHalvesTheCapInTokensAndLeavesTheGradientAsItIs) {
    const Result whole = update(1'000'000);

    const Result halved = update(100);

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

}  // namespace
}  // namespace hetseq::test
