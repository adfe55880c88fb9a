#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "candidate_scan.hpp"
#include "decoder_model.hpp"
#include "key_store.hpp"
#include "row_pass.hpp"

namespace hetseq::detail {

namespace {

/// 1 for the first `count`, 0 for the rest of the last group.
template <class T>
std::vector<T> kept_positions(std::int64_t count) {
    std::vector<T> kept(static_cast<std::size_t>(whole_groups<T>(count)), T(0));
    std::fill_n(kept.begin(), count, T(1));
    return kept;
}

/// What the decoder holds of one sentence.
template <class T>
struct DecodedSentence {
    DecodedSentence(const PackedTransformer<T>& model, std::int64_t source_length)
        : length{source_length},
          kept{kept_positions<T>(source_length)},
          source(model.heads, static_cast<std::int64_t>(model.decoder.size()), source_length),
          own(model.heads, static_cast<std::int64_t>(model.decoder.size())) {}

    std::int64_t length;
    std::vector<T> kept;  // of the source's positions
    KeyStore<T> source;   // keys and values of the encoder's output
    HypothesisKeys<T> own;
    AlignedArray<T> scratch;     // of attention
    std::int64_t first_row = 0;  // of this step
};

template <class T>
class CpuModel;

template <class T>
class CpuStepDecoder final : public StepDecoder {
public:
    CpuStepDecoder(CpuModel<T>& model, std::span<const Source> sources);

    void step(std::span<const DecoderRow> rows,
              const CandidateRule& rule,
              Candidates& candidates) override;

private:
    using Sentences = std::vector<DecodedSentence<T>>;

    void encode(std::span<const Source> sources);
    void attend_to_itself(const std::vector<std::int64_t>& first_rows);
    void store_encoded(std::size_t layer, const std::vector<std::int64_t>& first_rows);
    void regroup(std::span<const DecoderRow> rows);
    void attend_to_own(std::int64_t layer);
    void attend_to_source(std::int64_t layer);
    CachedAttention<T> attention_of(const DecodedSentence<T>& sentence) const;
    /// `function(sentence, its index)` for all, on all threads.
    template <class Function>
    void for_each_sentence(const Function& function);

    CpuModel<T>& model_;
    const PackedTransformer<T>& weights_;
    RowPass<T>& pass_;
    Sentences sentences_;
    std::vector<std::int32_t> sentence_of_row_;
    std::int64_t position_ = 0;
};

template <class T>
class CpuModel final : public DecoderModel {
public:
    CpuModel(const TransformerConfig& config, const TransformerWeights& weights)
        : weights{config, weights},
          pass{this->weights},
          max_positions{config.max_positions},
          symbols{0, static_cast<std::int32_t>(config.end_id)} {}

    std::unique_ptr<StepDecoder> start(std::span<const Source> sources) override {
        return std::make_unique<CpuStepDecoder<T>>(*this, sources);
    }

    PackedTransformer<T> weights;
    RowPass<T> pass;
    std::int64_t max_positions;
    RuleSymbols symbols;
};

template <class T>
CpuStepDecoder<T>::CpuStepDecoder(CpuModel<T>& model, std::span<const Source> sources)
    : model_{model}, weights_{model.weights}, pass_{model.pass} {
    sentences_.reserve(sources.size());
    for (const Source& source : sources) {
        const auto length = static_cast<std::int64_t>(source.size());
        HETSEQ_ASSERT(length > 0 && length <= model.max_positions);
        sentence_of_row_.push_back(static_cast<std::int32_t>(sentences_.size()));
        sentences_.emplace_back(weights_, length);
    }
    if (!sources.empty())
        encode(sources);
}

template <class T>
template <class Function>
void CpuStepDecoder<T>::for_each_sentence(const Function& function) {
    at::parallel_for(0,
                     static_cast<std::int64_t>(sentences_.size()),
                     1,
                     [&](std::int64_t first, std::int64_t last) {
                         for (std::int64_t i = first; i < last; ++i)
                             function(sentences_[static_cast<std::size_t>(i)],
                                      static_cast<std::size_t>(i));
                     });
}

// Rows are the tokens of all sources, end to end.
template <class T>
void CpuStepDecoder<T>::encode(std::span<const Source> sources) {
    std::vector<std::int64_t> first_rows;
    std::int64_t rows = 0;
    for (const Source& source : sources) {
        first_rows.push_back(rows);
        rows += static_cast<std::int64_t>(source.size());
    }
    pass_.start(rows);
    for (std::size_t i = 0; i < sources.size(); ++i)
        for (std::size_t at = 0; at < sources[i].size(); ++at)
            pass_.embed(first_rows[i] + static_cast<std::int64_t>(at),
                        weights_.source_table,
                        sources[i][at],
                        weights_.source_positions,
                        static_cast<std::int64_t>(at));
    for (const PackedEncoderLayer<T>& layer : weights_.encoder) {
        pass_.self_attention(layer.self, [&] { attend_to_itself(first_rows); });
        pass_.feed_forward(layer.feed_forward);
    }
    if (weights_.encoder_norm)
        pass_.normalise(*weights_.encoder_norm);
    for (std::size_t layer = 0; layer < weights_.decoder.size(); ++layer)
        store_encoded(layer, first_rows);
}

template <class T>
CachedAttention<T> CpuStepDecoder<T>::attention_of(const DecodedSentence<T>& sentence) const {
    CachedAttention<T> attention;
    attention.kept = sentence.kept.data();
    attention.out = pass_.seen() + sentence.first_row * pass_.stride();
    attention.out_stride = pass_.stride();
    return attention;
}

template <class T>
void CpuStepDecoder<T>::attend_to_itself(const std::vector<std::int64_t>& first_rows) {
    for_each_sentence([&](const DecodedSentence<T>& sentence, std::size_t i) {
        KeyStore<T> store(weights_.heads, 1, sentence.length);
        const T* qkv = pass_.qkv() + first_rows[i] * pass_.qkv_stride();
        for (std::int64_t at = 0; at < sentence.length; ++at) {
            const T* row = qkv + at * pass_.qkv_stride();
            store.store(0, at, row + weights_.width, row + 2 * weights_.width);
        }
        CachedAttention<T> attention = attention_of(sentence);
        attention.queries = qkv;
        attention.query_stride = pass_.qkv_stride();
        attention.rows = sentence.length;
        attention.cache = store.layer(0, sentence.length);
        attention.out = pass_.seen() + first_rows[i] * pass_.stride();
        AlignedArray<T> scratch(attention_scratch<T>(attention.cache.groups));
        attention.scratch = scratch.data();
        attend(attention, weights_.heads);
    });
}

template <class T>
void CpuStepDecoder<T>::store_encoded(std::size_t layer,
                                      const std::vector<std::int64_t>& first_rows) {
    const PackedLinear<T>& linear = weights_.decoder[layer].cross.key_value;
    const std::int64_t stride = whole_groups<T>(linear.outputs());
    T* key_value = pass_.qkv();
    linear.apply(pass_.x(), pass_.rows(), key_value);
    for_each_sentence([&](DecodedSentence<T>& sentence, std::size_t i) {
        for (std::int64_t at = 0; at < sentence.length; ++at) {
            const T* row = key_value + (first_rows[i] + at) * stride;
            sentence.source.store(static_cast<std::int64_t>(layer), at, row, row + weights_.width);
        }
    });
}

// Sentences without rows go; the others take over their hypotheses' positions.
template <class T>
void CpuStepDecoder<T>::regroup(std::span<const DecoderRow> rows) {
    Sentences going;
    std::vector<std::int32_t> sentence_of_row, parents;
    for (std::size_t row = 0; row < rows.size();) {
        const auto sentence_of = [&](std::size_t i) {
            return sentence_of_row_[static_cast<std::size_t>(rows[i].parent)];
        };
        const std::int32_t sentence = sentence_of(row);
        going.push_back(std::move(sentences_[static_cast<std::size_t>(sentence)]));
        DecodedSentence<T>& taken = going.back();
        const std::int64_t first_before = taken.first_row;
        taken.first_row = static_cast<std::int64_t>(row);
        parents.clear();
        for (; row < rows.size() && sentence_of(row) == sentence; ++row) {
            parents.push_back(rows[row].parent - static_cast<std::int32_t>(first_before));
            sentence_of_row.push_back(static_cast<std::int32_t>(going.size()) - 1);
        }
        taken.own.advance(parents);
    }
    sentences_ = std::move(going);
    sentence_of_row_ = std::move(sentence_of_row);
}

template <class T>
void CpuStepDecoder<T>::attend_to_own(std::int64_t layer) {
    for_each_sentence([&](DecodedSentence<T>& sentence, std::size_t) {
        const T* qkv = pass_.qkv() + sentence.first_row * pass_.qkv_stride();
        for (std::int64_t i = 0; i < sentence.own.rows(); ++i) {
            const T* row = qkv + i * pass_.qkv_stride();
            sentence.own.store(layer, i, row + weights_.width, row + 2 * weights_.width);
        }
        CachedAttention<T> attention = attention_of(sentence);
        attention.queries = qkv;
        attention.query_stride = pass_.qkv_stride();
        attention.rows = sentence.own.rows();
        attention.cache = sentence.own.layer(layer);
        attention.kept = sentence.own.kept();
        attention.kept_stride = sentence.own.kept_stride();
        attention.scratch = sentence.scratch.room_for(attention_scratch<T>(attention.cache.groups));
        attend(attention, weights_.heads);
    });
}

template <class T>
void CpuStepDecoder<T>::attend_to_source(std::int64_t layer) {
    for_each_sentence([&](DecodedSentence<T>& sentence, std::size_t) {
        CachedAttention<T> attention = attention_of(sentence);
        attention.queries = pass_.query() + sentence.first_row * pass_.stride();
        attention.query_stride = pass_.stride();
        attention.rows = sentence.own.rows();
        attention.cache = sentence.source.layer(layer, sentence.length);
        attention.scratch = sentence.scratch.room_for(attention_scratch<T>(attention.cache.groups));
        attend(attention, weights_.heads);
    });
}

template <class T>
void CpuStepDecoder<T>::step(std::span<const DecoderRow> rows,
                             const CandidateRule& rule,
                             Candidates& candidates) {
    HETSEQ_ASSERT(position_ < model_.max_positions);
    regroup(rows);
    const auto count = static_cast<std::int64_t>(rows.size());
    pass_.start(count);
    for (std::int64_t i = 0; i < count; ++i)
        pass_.embed(i,
                    weights_.target_table,
                    rows[static_cast<std::size_t>(i)].token,
                    weights_.target_positions,
                    position_);
    for (std::size_t i = 0; i < weights_.decoder.size(); ++i) {
        const PackedDecoderLayer<T>& layer = weights_.decoder[i];
        const auto number = static_cast<std::int64_t>(i);
        pass_.self_attention(layer.self, [&] { attend_to_own(number); });
        pass_.cross_attention(layer.cross, [&] { attend_to_source(number); });
        pass_.feed_forward(layer.feed_forward);
    }
    if (weights_.decoder_norm)
        pass_.normalise(*weights_.decoder_norm);
    scan_vocabulary(weights_.output, pass_.x(), count, rule, model_.symbols, candidates);
    ++position_;
}

}  // namespace

std::unique_ptr<DecoderModel> make_cpu_decoder(const TransformerConfig& config,
                                               const TransformerWeights& weights) {
    if (weights.output_table.scalar_type() == at::kDouble)
        return std::make_unique<CpuModel<double>>(config, weights);
    return std::make_unique<CpuModel<float>>(config, weights);
}

}  // namespace hetseq::detail
