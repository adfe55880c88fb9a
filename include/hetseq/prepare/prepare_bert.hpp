#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/text/bert/basic_tokenizer.hpp"
#include "hetseq/prepare/bert/token_masking.hpp"
#include "hetseq/prepare/prepare_progress.hpp"

namespace hetseq {

class HostComm;

struct PrepareBertOptions {
    /// Files of text, plain or gzip: a sentence in each line, a blank line between documents. A
    /// file's end ends a document.
    std::vector<std::string> train{};
    std::vector<std::string> valid{};  // may be empty
    std::string vocabulary{};          // the file of WordPiece's pieces
    BasicTokenizerOptions text{};
    std::string output{};           // folder, made where it is missing
    std::int64_t shards = 0;        // of each set, at most; 0: one for each 16 MiB of text
    std::int64_t seq_length = 128;  // at least 5
    MaskingOptions masking{};
    std::int64_t copies = 5;       // of each document, with other pairs and masks
    double short_pair_prob = 0.1;  // of a document whose pairs are shorter
    std::uint64_t seed = 1;
    /// Whether shards hold masked rows, or pairs that are masked when they are loaded.
    enum class Masks { in_shards, when_loaded } masks = Masks::in_shards;
    bool overwrite = false;  // shards of the same sets in `output`
    PrepareProgress progress{};
};

OptionsOf<PrepareBertOptions> prepare_bert_options();

/// A set that was written: shards NAME-*.h5.
struct PreparedBertSet {
    std::string name;             // "train", "valid"
    std::int64_t text_bytes = 0;  // read
    std::int64_t documents = 0;
    std::int64_t dropped_documents = 0;  // of these; no line of them had a token
    std::int64_t sentences = 0;
    std::int64_t tokens = 0;                       // of the sentences
    std::int64_t unknown = 0;                      // of these
    std::int64_t pairs = 0;                        // written
    std::int64_t pair_tokens = 0;                  // of these, [CLS] and [SEP] included
    std::int64_t places = 0;                       // for tokens in the rows, padding included
    std::int64_t random_next = 0;                  // pairs
    std::int64_t random_next_of_own_document = 0;  // of these; their shard has no other one
    std::int64_t cut_pairs = 0;
    std::int64_t cut_tokens = 0;
    MaskingCounts predictions{};  // none where pairs are masked when they are loaded
    std::int64_t shards = 0;
    std::int64_t shard_bytes = 0;
};

struct PreparedBert {
    std::vector<PreparedBertSet> sets{};
    std::int64_t vocabulary = 0;  // pieces
    double seconds = 0;
};

/// The names of the shards' attributes, and of the files of the same content beside them.
constexpr const char* bert_vocabulary_name = "vocab.txt";
constexpr const char* bert_tokenizer_name = "tokenizer_config.json";

/// Collective. Writes OUTPUT/train-00000-of-00004.h5 and so on: BERT's pretraining data as NVIDIA's
/// create_pretraining_data.py lays them out, or as ragged pairs without masks and padding
/// (docs/data.md). The vocabulary is an attribute. Shards
/// are cut between documents, and a random next sentence comes from the same shard. The same input
/// and options give the same bytes on any number of ranks; a rank's memory holds a shard's tokens.
/// The files appear when all are complete. Throws MissingInput, BadData, BadConfig or IoError, the
/// same on all ranks.
PreparedBert prepare_bert(const HostComm& world, const PrepareBertOptions& options);

}  // namespace hetseq
