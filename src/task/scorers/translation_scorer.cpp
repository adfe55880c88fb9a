#include "translation_scorer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/decoding/translator.hpp"

namespace hetseq {

namespace {

using Ids = std::vector<std::int32_t>;

// Row i of `matrix` up to its length.
std::vector<Ids> rows_of(const at::Tensor& matrix, const at::Tensor& lengths) {
    const at::Tensor values = matrix.to(at::kCPU, at::kInt).contiguous();
    const at::Tensor counts = lengths.to(at::kCPU, at::kLong).contiguous();
    std::vector<Ids> rows;
    for (std::int64_t i = 0; i < values.size(0); ++i) {
        const auto* begin = values.const_data_ptr<std::int32_t>() + i * values.size(1);
        rows.emplace_back(begin, begin + counts.const_data_ptr<std::int64_t>()[i]);
    }
    return rows;
}

// The targets, whose tokens a batch holds end to end.
std::vector<Ids> targets_of(const MicroBatch& batch) {
    const at::Tensor labels = batch.tensors.at("labels").to(at::kCPU, at::kInt).contiguous();
    const at::Tensor positions = batch.tensors.at("positions").to(at::kCPU).contiguous();
    const std::int64_t longest = batch.tensors.at("target_input").size(1);
    std::vector<Ids> targets(static_cast<std::size_t>(batch.tensors.at("source").size(0)));
    for (std::int64_t i = 0; i < labels.numel(); ++i) {
        const std::int64_t row = positions.const_data_ptr<std::int64_t>()[i] / longest;
        targets[static_cast<std::size_t>(row)].push_back(labels.const_data_ptr<std::int32_t>()[i]);
    }
    return targets;
}

class TranslationScorer final : public CorpusScorer {
public:
    TranslationScorer(const Transformer& model,
                      Vocabulary targets,
                      const BeamOptions& beam,
                      const BleuOptions& bleu)
        : translator_{model}, targets_{std::move(targets)}, beam_{beam}, bleu_{bleu} {}

    std::size_t sums() const override { return BleuStatistics{}.values.size(); }

    void add(const MicroBatch& batch, const ForwardResult&, std::span<double> sums) override {
        const std::vector<Ids> sources =
            rows_of(batch.tensors.at("source"), batch.tensors.at("source_lengths"));
        const std::vector<Ids> targets = targets_of(batch);
        const auto found = translator_.translate(sources, beam_);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const std::string reference = targets_.decode(targets[i]);
            const std::string_view references[] = {reference};
            const BleuStatistics statistics =
                bleu_statistics(targets_.decode(found[i].front().tokens), references, bleu_);
            for (std::size_t k = 0; k < sums.size(); ++k)
                sums[k] += static_cast<double>(statistics.values[k]);
        }
    }

    std::vector<double> values(std::span<const double> sums,
                               std::span<const std::string>) const override {
        BleuStatistics statistics;
        for (std::size_t k = 0; k < sums.size(); ++k)
            statistics.values[k] = static_cast<std::int64_t>(sums[k]);
        return {bleu_score(statistics, bleu_).score};
    }

private:
    Translator translator_;
    Vocabulary targets_;
    BeamOptions beam_;
    BleuOptions bleu_;
};

}  // namespace

std::unique_ptr<CorpusScorer> make_translation_scorer(const Transformer& model,
                                                      const Vocabulary& targets,
                                                      const BeamOptions& beam,
                                                      const BleuOptions& bleu) {
    return std::make_unique<TranslationScorer>(model, targets, beam, bleu);
}

}  // namespace hetseq
