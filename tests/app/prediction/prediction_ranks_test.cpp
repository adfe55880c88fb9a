#include "app/prediction/prediction_ranks.hpp"

#include <numeric>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "hetseq/comm/agree.hpp"

#include "data/generated_corpus.hpp"
#include "data/read_dataset.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

constexpr std::int64_t blocks = 40, batches = 3, batch_samples = 4;
constexpr std::int64_t all_samples = blocks * batches * batch_samples;

class PredictionRanksTest : public testing::Test {
protected:
    static std::vector<MicroBatch> read(std::int64_t block) {
        std::vector<MicroBatch> result;
        for (std::int64_t i = 0; i < batches; ++i) {
            MicroBatch& batch = result.emplace_back();
            const std::int64_t begin = (block * batches + i) * batch_samples;
            batch.sample_ids = at::arange(begin, begin + batch_samples);
            batch.samples = batch_samples;
        }
        return result;
    }

    // The square of each id, and as many words as its last digit says.
    PredictedBatch predict(BatchToPredict& task) const {
        const at::Tensor ids = task.batch.sample_ids;
        const at::Tensor lengths = ids.remainder(10);
        PredictedBatch result{
            .begin = ids[0].item<std::int64_t>(),
            .samples = task.batch.samples,
            .predictions = {{"square", ids * ids},
                            {"words", ids.repeat_interleave(lengths).to(at::kInt), lengths}},
            .seconds = 0.001 * (1 + 4 * world_.rank()),
            .ends_block = task.ends_block};
        std::this_thread::sleep_for(std::chrono::microseconds(200 * (1 + 4 * world_.rank())));
        return result;
    }

    // Collective. Each rank's samples on rank 0; throws on all ranks what one throws.
    std::vector<std::int64_t> run(const Predict& predict) {
        Mailbox mailbox(world_);
        if (world_.rank() != 0) {
            agree(world_, serve_predictions(mailbox, read, predict));
            return {};
        }
        PredictionFile file(folder_ / "out.h5", all_samples);
        PredictionOutcome outcome;
        {
            PredictionWorker own(predict, at::kCPU);
            outcome = run_predictions({.mailbox = mailbox,
                                       .own = own,
                                       .read = read,
                                       .blocks = blocks,
                                       .samples = all_samples,
                                       .progress = [](std::int64_t) {}},
                                      file);
        }
        agree(world_, outcome.failure);
        file.commit();
        return outcome.samples;
    }

    HostComm world_ = test::world();
    test::SharedFolder folder_{world_};
};

TEST_F(PredictionRanksTest, AllSamplesAreInTheOrderOfTheData) {
    const std::vector<std::int64_t> samples =
        run([&](BatchToPredict& task) { return predict(task); });

    if (world_.rank() != 0)
        return;
    EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), std::int64_t{0}), all_samples);
    for (std::size_t r = 1; r < samples.size(); ++r) {
        EXPECT_GT(samples[r], 0);
        EXPECT_LT(samples[r], samples[0]);  // they are slower
    }
    const auto squares = test::read_dataset(folder_ / "out.h5", "square");
    const auto words = test::read_rows(folder_ / "out.h5", "words");
    ASSERT_EQ(squares.size(), std::size_t(all_samples));
    ASSERT_EQ(words.size(), std::size_t(all_samples));
    for (std::int64_t i = 0; i < all_samples; ++i) {
        EXPECT_EQ(squares[std::size_t(i)], i * i);
        EXPECT_EQ(words[std::size_t(i)], std::vector<std::int32_t>(std::size_t(i % 10), int(i)));
    }
}

TEST_F(PredictionRanksTest, AnErrorOfAnyRankEndsAllRanks) {
    for (int failing = 0; failing < world_.size(); ++failing) {
        std::string error = "none";
        try {
            run([&](BatchToPredict& task) {
                if (world_.rank() == failing)
                    throw BadConfig("rank " + std::to_string(failing) + " cannot predict");
                return predict(task);
            });
        } catch (const AgreedError& agreed) {
            error = agreed.what();
        }
        EXPECT_NE(error.find("rank " + std::to_string(failing) + " cannot"), std::string::npos)
            << error;
    }
}

TEST_F(PredictionRanksTest, AnErrorOfTheFileEndsAllRanks) {
    EXPECT_THROW(run([&](BatchToPredict& task) {
                     PredictedBatch result = predict(task);
                     if (result.begin >= all_samples / 2)
                         result.predictions.pop_back();
                     return result;
                 }),
                 AgreedError);
}

}  // namespace
}  // namespace hetseq
