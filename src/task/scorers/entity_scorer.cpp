#include "entity_scorer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "hetseq/model/model.hpp"

namespace hetseq {

namespace {

constexpr EntityMode entity_modes[] = {EntityMode::lenient, EntityMode::strict};
constexpr std::size_t counts_of_mode = 3;

std::vector<std::int32_t> tags_of(const at::Tensor& numbers) {
    const at::Tensor values = numbers.to(at::kCPU, at::kInt).contiguous();
    const auto* begin = values.const_data_ptr<std::int32_t>();
    return {begin, begin + values.numel()};
}

class EntityScorer final : public CorpusScorer {
public:
    explicit EntityScorer(const TagSet& tags) : tags_{tags} {}

    std::size_t sums() const override { return counts_of_mode * std::size(entity_modes); }

    void add(const MicroBatch& batch,
             const ForwardResult& result,
             std::span<double> sums) override {
        const std::vector<std::int32_t> expected = tags_of(batch.tensors.at("labels"));
        const std::vector<std::int32_t> predicted = tags_of(result.output);
        std::size_t word = 0;
        for (const std::int32_t words : tags_of(batch.tensors.at("word_counts"))) {
            const auto count = static_cast<std::size_t>(words);
            add_sentence(std::span{expected}.subspan(word, count),
                         std::span{predicted}.subspan(word, count),
                         sums);
            word += count;
        }
    }

    std::vector<double> values(std::span<const double> sums,
                               std::span<const std::string>) const override {
        std::vector<double> values;
        for (std::size_t i = 0; i < std::size(entity_modes); ++i) {
            const auto of_mode = sums.subspan(counts_of_mode * i, counts_of_mode);
            const EntityCounts counts{.correct = static_cast<std::int64_t>(of_mode[0]),
                                      .predicted = static_cast<std::int64_t>(of_mode[1]),
                                      .expected = static_cast<std::int64_t>(of_mode[2])};
            values.insert(values.end(), {counts.precision(), counts.recall(), counts.f1()});
        }
        return values;
    }

private:
    void add_sentence(std::span<const std::int32_t> expected,
                      std::span<const std::int32_t> predicted,
                      std::span<double> sums) const {
        for (std::size_t i = 0; i < std::size(entity_modes); ++i) {
            EntityCounts counts;
            count_entities(tags_, expected, predicted, entity_modes[i], counts);
            sums[counts_of_mode * i] += static_cast<double>(counts.correct);
            sums[counts_of_mode * i + 1] += static_cast<double>(counts.predicted);
            sums[counts_of_mode * i + 2] += static_cast<double>(counts.expected);
        }
    }

    TagSet tags_;
};

}  // namespace

std::vector<std::string> entity_score_names() {
    return {"precision", "recall", "f1", "strict_precision", "strict_recall", "strict_f1"};
}

std::unique_ptr<CorpusScorer> make_entity_scorer(const TagSet& tags) {
    return std::make_unique<EntityScorer>(tags);
}

}  // namespace hetseq
