#include "hetseq/train/validation/evaluator.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/worker_map.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

constexpr std::int64_t samples = 43;  // in batches of 3, 4, 4 or 6: the last one is smaller

// 3, 1, 0, 2 for as many ranks as there are.
std::vector<std::int64_t> uneven(const HostComm& world) {
    const std::vector<std::int64_t> all{3, 1, 0, 2};
    return {all.begin(), all.begin() + world.size()};
}

/// The toy model over a whole corpus, fp64.
class ToyEvaluation {
public:
    ToyEvaluation(const HostComm& world,
                  const std::string& data,
                  const std::vector<std::int64_t>& capacities,
                  std::unique_ptr<Collator> collator = std::make_unique<ToyCollator>())
        : collator_{std::move(collator)},
          data_{world, test::environment().thread_support() == ThreadSupport::multiple},
          corpus_{
              data_, data, toy_schema(), {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1}},
          loader_{corpus_, *collator_, {.shuffle = Shuffle::no, .loss_terms = 2}},
          shares_{world, "declared", capacities},
          plan_{corpus_.samples(), shares_.total_capacity()},
          workers_{world.size()},
          evaluator_{world, workers_, *pass_, loader_, plan_, shares_} {
        initialise_parameters(model_, 5);
        model_.to(at::kDouble);
    }

    Evaluation run(const MicroBatchCap& most = {}) { return evaluator_.run(most); }
    ToyModel& model() { return model_; }
    SharePlan& shares() { return shares_; }

private:
    std::unique_ptr<Collator> collator_;
    DataContext data_;
    ToyModel model_{0.3};
    Corpus corpus_;
    Loader loader_;
    SharePlan shares_;
    BatchPlan plan_;
    WorkerMap workers_;
    std::unique_ptr<Pass> pass_ = make_whole_pass(model_);
    Evaluator evaluator_;
};

class EvaluatorTest : public testing::Test {
protected:
    EvaluatorTest() : good_{write_toy_corpus(world_, samples)} {}
    ~EvaluatorTest() override { remove_toy_corpus(world_, good_); }

    struct Caught {
        ExitCode code = ExitCode::finished;
        std::string text;
    };
    // By agreement, so that all ranks go on together.
    static Caught error_of(ToyEvaluation& evaluation) {
        try {
            evaluation.run();
        } catch (const AgreedError& error) {
            return {error.code(), error.what()};
        }
        return {};
    }
    void expect_same_on_all(const std::string& text) const {
        for (const std::string& other : world_.all_gather(text))
            EXPECT_EQ(other, text);
    }

    HostComm world_ = test::world();
    std::string good_;
};

// Losses of the whole corpus as one micro-batch on one rank.
TEST_F(EvaluatorTest, UnevenSharesGiveWhatOneMicroBatchGives) {
    ToyEvaluation whole(HostComm::serial(), good_, {samples});
    ToyEvaluation shared(world_, good_, uneven(world_));

    const Evaluation expected = whole.run();
    const Evaluation evaluation = shared.run();

    EXPECT_EQ(whole.model().forwards(), 1);
    EXPECT_EQ(evaluation.samples, samples);
    for (std::size_t j = 0; j < 2; ++j) {
        EXPECT_NEAR(evaluation.losses[j].value, expected.losses[j].value, 1e-12);
        EXPECT_EQ(evaluation.metrics[j].value, expected.metrics[j].value);
    }
}

TEST_F(EvaluatorTest, DataWithoutAnyWeightHaveNoLoss) {
    ToyEvaluation evaluation(world_,
                             good_,
                             uneven(world_),
                             std::make_unique<WeightlessCollator>(std::vector<std::size_t>{0, 1}));

    const Evaluation nothing = evaluation.run();

    EXPECT_TRUE(std::isnan(nothing.loss()));
    for (const Evaluation::Value& metric : nothing.metrics)
        EXPECT_TRUE(std::isnan(metric.value)) << metric.name;
}

TEST_F(EvaluatorTest, ATermWithoutWeightHasNoValueAndAddsNothing) {
    const std::vector<std::size_t> tokens{0};
    ToyEvaluation some(world_, good_, uneven(world_), std::make_unique<WeightlessCollator>(tokens));
    ToyEvaluation all(world_, good_, uneven(world_));

    const Evaluation labels = some.run(), whole = all.run();

    EXPECT_EQ(labels.loss(), whole.value_of("label"));
    for (const char* name : {"token", "token_accuracy", "token_perplexity"}) {
        EXPECT_FALSE(labels.has_weight(name)) << name;
        EXPECT_TRUE(std::isnan(labels.value_of(name))) << name;
        EXPECT_TRUE(whole.has_weight(name)) << name;
    }
    for (const char* name : {"label", "label_accuracy", "loss"})
        EXPECT_TRUE(labels.has_weight(name)) << name;
    EXPECT_EQ(value_text(labels.metrics.front()), "none");
}

TEST_F(EvaluatorTest, APerplexityIsThePowerOfItsLoss) {
    ToyEvaluation shared(world_, good_, uneven(world_));

    const Evaluation evaluation = shared.run();

    EXPECT_EQ(evaluation.value_of("token_perplexity"), std::exp(evaluation.losses[0].value));
    EXPECT_EQ(value_text(evaluation.metrics.back()).find('%'), std::string::npos);
}

TEST_F(EvaluatorTest, AMicroBatchIsNoLargerThanAsked) {
    ToyEvaluation evaluation(world_, good_, uneven(world_));
    std::int64_t largest = 0;
    evaluation.model().set_spoil([&](const MicroBatch& batch, const ForwardContext&, auto&) {
        largest = std::max(largest, batch.samples);
    });

    evaluation.run({.samples = 2});

    EXPECT_EQ(largest, std::min<std::int64_t>(2, uneven(world_)[std::size_t(world_.rank())]));
}

TEST_F(EvaluatorTest, AForwardThatThrowsOnOneRankIsTheSameErrorOnAll) {
    ToyEvaluation evaluation(world_, good_, uneven(world_));
    const int failing = std::min(1, world_.size() - 1);  // a rank with work, not the first
    evaluation.model().set_spoil([&](const MicroBatch&, const ForwardContext&, auto&) {
        if (world_.rank() == failing && evaluation.model().forwards() == 2)
            throw std::runtime_error("the head fell off");
    });

    const Caught caught = error_of(evaluation);

    EXPECT_EQ(caught.code, ExitCode::internal);
    EXPECT_THAT(caught.text, testing::HasSubstr("the head fell off"));
    if (world_.size() > 1) {
        EXPECT_THAT(caught.text, testing::HasSubstr("[rank 1 on "));
    }
    expect_same_on_all(caught.text);
}

// It has taken all it requested: no rank is ahead of another.
TEST_F(EvaluatorTest, RunsAgainAfterAForwardThatThrew) {
    ToyEvaluation evaluation(world_, good_, uneven(world_));
    const double expected = evaluation.run().loss();
    evaluation.model().set_spoil([&](const MicroBatch&, const ForwardContext&, auto&) {
        if (world_.rank() == 0)
            throw std::runtime_error("the head fell off");
    });
    EXPECT_THAT(error_of(evaluation).text, testing::HasSubstr("the head fell off"));
    evaluation.model().set_spoil({});

    EXPECT_EQ(evaluation.run().loss(), expected);
}

TEST_F(EvaluatorTest, RanksThatCutOtherwiseAreNamedOnAllRanks) {
    if (world_.size() == 1)
        return;
    std::vector<std::int64_t> ones(static_cast<std::size_t>(world_.size()), 1);
    ToyEvaluation evaluation(world_, good_, ones);
    if (world_.rank() == 1)
        ones.front() = 10;
    evaluation.shares().change(ones);

    const Caught caught = error_of(evaluation);

    EXPECT_EQ(caught.code, ExitCode::internal);
    EXPECT_THAT(caught.text, testing::HasSubstr("(rank 1 otherwise than rank 0)"));
    expect_same_on_all(caught.text);
}

TEST_F(EvaluatorTest, ABadBlockIsTheSameErrorOnAllRanks) {
    const std::string bad = write_toy_corpus(world_, samples, 17);
    ToyEvaluation evaluation(world_, bad, uneven(world_));

    const Caught caught = error_of(evaluation);

    EXPECT_EQ(caught.code, ExitCode::bad_data);
    EXPECT_THAT(caught.text, testing::HasSubstr("200"));
    EXPECT_THAT(caught.text, testing::HasSubstr("b.h5"));
    expect_same_on_all(caught.text);
    remove_toy_corpus(world_, bad);
}

}  // namespace
}  // namespace hetseq::test
