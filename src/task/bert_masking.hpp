#pragma once

#include <cstdint>
#include <memory>

#include "hetseq/data/loading/collator.hpp"
#include "hetseq/prepare/bert/token_masking.hpp"

namespace hetseq {

/// Masks pairs that shards hold unmasked (docs/data.md), by (seed, epoch, sample): rows
/// "input_ids" (ragged, [CLS] and [SEP] included), "second_segments" (n), where the second segment
/// begins, and "next_sentence_labels" (n). The micro-batch is padded to its longest row. Weights
/// and tensors are those of the batching of masked rows.
std::unique_ptr<Collator> make_masking_collator(MaskingVocabulary vocabulary,
                                                const MaskingOptions& options,
                                                std::uint64_t seed);

}  // namespace hetseq
