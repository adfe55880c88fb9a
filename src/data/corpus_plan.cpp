#include "hetseq/data/corpus_plan.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "hetseq/util/error.hpp"
#include "hetseq/data/order/window_plan.hpp"

#include "corpus_impl.hpp"

namespace hetseq {

namespace {

// The place of the units field among `fields`.
std::optional<std::size_t> units_among(const std::vector<std::size_t>& fields,
                                       const CorpusSchema& schema) {
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (schema.fields[fields[i]].name == schema.units_field)
            return i;
    return std::nullopt;
}

void check_units(const RaggedExtents& extents,
                 const std::optional<std::size_t>& field,
                 std::int64_t units) {
    const std::int64_t longest = field ? extents.longest[*field] : 1;
    if (units < longest)
        throw BadConfig(
            "batches of " + std::to_string(units) + " tokens are too small",
            "the longest sample has " + std::to_string(longest),
            "raise --batch-tokens, or --max-tokens where it is not given (a batch has 0.9 "
            "of their sum then), or leave long samples out: --max-length N "
            "--skip-too-long");
}

}  // namespace

BatchPlan make_batch_plan(Corpus& corpus,
                          const BatchSize& size,
                          std::uint64_t seed,
                          Shuffle shuffle) {
    if (!corpus.is_ragged()) {
        if (size.units > 0)
            throw BadConfig("--batch-tokens was given",
                            "no lengths of rows plan the batches of this corpus",
                            "give --batch-size");
        return BatchPlan(
            shuffle == Shuffle::yes ? corpus.geometry().epoch_samples() : corpus.samples(),
            size.samples);
    }
    Corpus::Impl& impl = *corpus.impl();
    const CorpusSchema& schema = impl.shards.schema();
    const RaggedExtents& extents = corpus.extents();
    WindowPlanOptions options{.geometry = impl.geometry,
                              .seed = seed,
                              .shuffle = shuffle,
                              .batch_weight = std::max(size.samples, size.units),
                              .units_field = units_among(length_fields(schema), schema),
                              .counts_samples = size.samples > 0,
                              .max_length = extents.too_long > 0 ? impl.max_length : 0,
                              .block_samples = extents.block_samples,
                              .block_weights = extents.block_units};
    if (options.counts_samples)
        options.block_weights = options.block_samples;
    else
        check_units(extents, units_among(ragged_fields(schema), schema), size.units);
    return BatchPlan(std::make_shared<WindowPlan>(std::move(options), *impl.lengths));
}

}  // namespace hetseq
