#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/prepare/files/text_index.hpp"
#include "hetseq/prepare/prepare_translation.hpp"

#include "rank_progress.hpp"
#include "translation_vocabularies.hpp"

namespace hetseq {

/// The texts of a set.
struct IndexedPairs {
    std::span<const TextIndex> sources;
    std::span<const TextIndex> targets;
};

/// Turns pairs of lines into rows of shards, and counts what it meets. Going forward reads gzip
/// files once. What it is given must outlive it.
class PairEncoder {
public:
    PairEncoder(const IndexedPairs& pairs,
                const TranslationVocabularies& vocabularies,
                const PrepareTranslationOptions& options);

    /// Rows of pairs [begin, end) but those that are dropped, behind the vocabularies.
    /// `progress` counts in pairs.
    void write(std::int64_t begin,
               std::int64_t end,
               RaggedShardWriter& shard,
               PreparedSet& counts,
               RankProgress& progress);

private:
    /// The counter of the reason for which the encoded pair is dropped; null: it is kept.
    std::int64_t PreparedSet::*reason_to_drop() const;
    void count(PreparedSide& side, const std::vector<std::int32_t>& ids) const;

    TextCursor source_text_;
    TextCursor target_text_;
    const TranslationVocabularies& vocabularies_;
    std::int64_t max_length_;
    double max_ratio_;
    std::vector<std::int32_t> source_;  // ids of a line
    std::vector<std::int32_t> target_;
};

}  // namespace hetseq
