#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "hetseq/text/bert/bert_tokenizer.hpp"
#include "hetseq/data/files/fixed_shard_writer.hpp"
#include "hetseq/data/files/ragged_shard_writer.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"
#include "hetseq/prepare/files/text_index.hpp"
#include "hetseq/prepare/prepare_bert.hpp"

#include "sentence_pairs.hpp"
#include "token_documents.hpp"

namespace hetseq {

/// Lines of a set's texts, and the shard's number in the set.
struct ShardLines {
    std::int64_t shard = 0;
    IndexRange lines;
};

/// A finished shard that waits for its name.
using PairShard = std::variant<FixedShardWriter, RaggedShardWriter>;

/// Makes shards of sentence pairs out of texts, and counts what it meets. Going forward reads gzip
/// files once. What it is given must outlive it.
class PairShardMaker {
public:
    PairShardMaker(std::span<const TextIndex> texts,
                   const WordPiece& pieces,
                   const PrepareBertOptions& options);

    /// A finished shard. `progress` gets the share of it that is done.
    PairShard make(const std::filesystem::path& path,
                   const ShardLines& from,
                   PreparedBertSet& counts,
                   const std::function<void(double)>& progress);

private:
    // The pairs in the order of the shard's rows, and where each was made.
    struct Pairs {
        TokenDocuments documents;
        std::vector<SentencePair> pairs;
        KeyedPermutation order;
        std::uint64_t mask_key;
    };

    Pairs read_pairs(const ShardLines& from, PreparedBertSet& counts);
    FixedShardWriter write_masked(const std::filesystem::path& path,
                                  const Pairs& made,
                                  PreparedBertSet& counts,
                                  const std::function<void(double)>& progress);
    RaggedShardWriter write_unmasked(const std::filesystem::path& path,
                                     const Pairs& made,
                                     PreparedBertSet& counts,
                                     const std::function<void(double)>& progress);
    template <class Writer>
    void attach_texts(Writer& writer) const;

    std::span<const TextIndex> texts_;
    TextCursor cursor_;
    BertTokenizer tokenizer_;
    const PrepareBertOptions& options_;
    TokenMasker masker_;
};

}  // namespace hetseq
