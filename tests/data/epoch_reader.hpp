#pragma once

#include <numeric>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"

#include "data/generated_corpus.hpp"

namespace hetseq::test {

/// Hands the rows on as they are; weights: samples, and tokens of the mask.
class EchoCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        for (const auto& [name, tensor] : rows)
            batch.tensors[name] = tensor.clone();
        const auto tokens = rows.at("input_mask").sum().item<std::int64_t>();
        batch.weights = {static_cast<double>(sample_ids.numel()), static_cast<double>(tokens)};
        return batch;
    }
};

/// Splits `size` over the ranks in the ratio of `weights`, what is left to the last that has any.
inline std::vector<std::int64_t> split(std::int64_t size,
                                       const std::vector<std::int64_t>& weights) {
    const std::int64_t total = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    std::vector<std::int64_t> units;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        units.push_back(size * weights[i] / total);
        last = weights[i] > 0 ? i : last;
    }
    units[last] += size - std::accumulate(units.begin(), units.end(), std::int64_t{0});
    return units;
}

/// Unequal shares with a zero among them: 1; 1, 0; 1, 0, 2; 1, 0, 2, 3.
inline std::vector<std::int64_t> uneven_weights(int ranks) {
    std::vector<std::int64_t> weights{1, 0, 2, 3, 1, 0, 2, 3};
    weights.resize(static_cast<std::size_t>(ranks));
    return weights;
}

/// Checks every value of `share` against the formulas of its samples.
inline void expect_formula_rows(const LoadedShare& share) {
    std::int64_t samples = 0;
    double tokens = 0;
    for (const MicroBatch& batch : share.micro_batches()) {
        const auto ids = batch.sample_ids.accessor<std::int64_t, 1>();
        const auto input = batch.tensors.at("input_ids").accessor<std::int32_t, 2>();
        const auto mask = batch.tensors.at("input_mask").accessor<std::int8_t, 2>();
        const auto position = batch.tensors.at("masked_lm_positions").accessor<std::int32_t, 2>();
        const auto label = batch.tensors.at("next_sentence_labels").accessor<std::int8_t, 1>();
        for (std::int64_t i = 0; i < batch.samples; ++i) {
            for (std::int64_t k = 0; k < sequence; ++k) {
                ASSERT_EQ(input[i][k], input_id(ids[i], k)) << "sample " << ids[i];
                ASSERT_EQ(mask[i][k], input_mask(ids[i], k)) << "sample " << ids[i];
                tokens += mask[i][k];
            }
            for (std::int64_t k = 0; k < predictions; ++k)
                ASSERT_EQ(position[i][k], masked_position(ids[i], k)) << "sample " << ids[i];
            ASSERT_EQ(label[i], next_sentence(ids[i])) << "sample " << ids[i];
        }
        samples += batch.samples;
    }
    EXPECT_EQ(share.samples(), samples);
    EXPECT_EQ(share.weights(), (std::vector<double>{double(samples), tokens}));
}

/// Requests global batches of a corpus one after the other and takes them `ahead` later.
class BatchReader {
public:
    BatchReader(const HostComm& world,
                Corpus& corpus,
                const Loader::Options& options,
                std::int64_t batch_size,
                std::size_t ahead = 3)
        : world_{world},
          plan_{corpus.samples(), batch_size},
          ahead_{ahead},
          visits_(static_cast<std::size_t>(corpus.samples()), 0),
          loader_{corpus, collator_, options} {}

    static Loader::Options options(Shuffle shuffle = Shuffle::yes) {
        return {.seed = 5, .shuffle = shuffle, .loss_terms = 2};
    }

    std::int64_t batches_per_epoch() const { return plan_.batches_per_epoch(); }

    void request() {
        const GlobalBatch batch = plan_.batch(requested_++);
        const auto slices = cut_by_rank(batch, split(batch.size(), uneven_weights(world_.size())));
        loader_.request(batch, slices, {.samples = 3});
    }

    LoadedShare take() { return loader_.take(); }

    /// The next batch: requests what is to be under way, takes the oldest, checks and counts it.
    void step() {
        while (loader_.outstanding() <= ahead_)
            request();
        const LoadedShare share = loader_.take();
        expect_formula_rows(share);
        for (const MicroBatch& batch : share.micro_batches())
            for (std::int64_t i = 0; i < batch.samples; ++i)
                ++visits_[batch.sample_ids[i].item<std::int64_t>()];
    }

    /// Collective. How often each sample was taken, over all ranks.
    std::vector<std::int64_t> visits() const {
        std::vector<std::int64_t> all = visits_;
        world_.all_reduce(all, ReduceOp::sum);
        return all;
    }

private:
    const HostComm& world_;
    BatchPlan plan_;
    std::size_t ahead_;
    std::int64_t requested_ = 0;
    std::vector<std::int64_t> visits_;
    EchoCollator collator_;
    Loader loader_;
};

}  // namespace hetseq::test
