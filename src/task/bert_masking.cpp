#include "bert_masking.hpp"

#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "hetseq/data/loading/padded_rows.hpp"

namespace hetseq {

namespace {

class MaskingCollator final : public Collator {
public:
    MaskingCollator(MaskingVocabulary vocabulary, const MaskingOptions& options, std::uint64_t seed)
        : masker_{std::move(vocabulary), options}, seed_{seed} {}

    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        return collate_for(rows, sample_ids, {});
    }

    MicroBatch collate_for(const TensorDict& rows,
                           const at::Tensor& sample_ids,
                           const Collation& collation) const override {
        const at::Tensor lengths = row_lengths(rows, "input_ids");                      // (n)
        const at::Tensor ids = padded_rows(rows, "input_ids", 0).contiguous().clone();  // (n, T)
        const at::Tensor place = at::arange(ids.size(1)).unsqueeze(0);                  // (1, T)
        const at::Tensor second = rows.at("second_segments").to(at::kLong);             // (n)
        const at::Tensor is_token = place < lengths.unsqueeze(1);
        MicroBatch batch;
        const Masked masked =
            collation.predicts ? Masked{} : mask(ids, lengths, sample_ids, collation.epoch);
        batch.tensors["input_ids"] = ids.to(at::kLong);
        batch.tensors["segment_ids"] = ((place >= second.unsqueeze(1)) & is_token).to(at::kLong);
        batch.tensors["attention_mask"] = is_token.to(at::kLong);
        batch.tensors["masked_positions"] = at::tensor(masked.positions, at::kLong);
        batch.tensors["masked_labels"] = at::tensor(masked.labels, at::kLong);
        if (rows.contains("next_sentence_labels"))
            batch.tensors["next_sentence_labels"] = rows.at("next_sentence_labels").to(at::kLong);
        batch.weights = {static_cast<double>(masked.labels.size()),
                         static_cast<double>(sample_ids.numel())};
        note_row_lengths(batch, is_token, batch.tensors.at("masked_positions"));
        return batch;
    }

private:
    struct Masked {
        std::vector<std::int64_t> positions;  // into n * T
        std::vector<std::int64_t> labels;
    };

    // Changes `ids` (n, T) int32.
    Masked mask(const at::Tensor& ids,
                const at::Tensor& lengths,
                const at::Tensor& sample_ids,
                std::int64_t epoch) const {
        TokenMasker masker = masker_;
        Masked masked;
        MaskingCounts counts;
        const std::int64_t longest = ids.size(1);
        const std::uint64_t epoch_key = mix_keys(seed_, static_cast<std::uint64_t>(epoch));
        for (std::int64_t row = 0; row < ids.size(0); ++row) {
            const auto sample = sample_ids[row].item<std::int64_t>();
            const auto length = static_cast<std::size_t>(lengths[row].item<std::int64_t>());
            KeyedDraws draws{mix_keys(epoch_key, static_cast<std::uint64_t>(sample))};
            masker.mask({ids.data_ptr<std::int32_t>() + row * longest, length}, draws, counts);
            for (const std::int32_t position : masker.positions())
                masked.positions.push_back(row * longest + position);
            masked.labels.insert(
                masked.labels.end(), masker.labels().begin(), masker.labels().end());
        }
        return masked;
    }

    TokenMasker masker_;  // copied for each micro-batch, since it keeps memory
    std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Collator> make_masking_collator(MaskingVocabulary vocabulary,
                                                const MaskingOptions& options,
                                                std::uint64_t seed) {
    return std::make_unique<MaskingCollator>(std::move(vocabulary), options, seed);
}

}  // namespace hetseq
