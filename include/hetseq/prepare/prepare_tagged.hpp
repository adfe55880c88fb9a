#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/text/bert/basic_tokenizer.hpp"

namespace hetseq {

struct PrepareTaggedOptions {
    /// Files, plain or gzip: a word and its tag in each line, a blank line between sentences.
    std::vector<std::string> train{};
    std::vector<std::string> valid{};  // may be empty
    std::vector<std::string> test{};   // may be empty
    std::string vocabulary{};          // the file of WordPiece's pieces
    BasicTokenizerOptions text{};
    std::string tags{};             // a file of tags, one a line; empty: those that occur
    std::string output{};           // folder, made where it is missing
    std::int64_t word_column = 1;   // from 1
    std::int64_t tag_column = 0;    // from 1; 0: the last
    std::int64_t max_length = 512;  // pieces of a row, [CLS] and [SEP] included; at least 3
    std::int64_t shards = 1;        // of each set
    bool overwrite = false;         // shards of the same sets in `output`
};

OptionsOf<PrepareTaggedOptions> prepare_tagged_options();

/// A set that was written: shards NAME-*.h5.
struct PreparedTaggedSet {
    std::string name;  // "train", "valid", "test"
    std::int64_t sentences = 0;
    std::int64_t words = 0;
    std::int64_t pieces = 0;
    std::int64_t unknown = 0;        // of these
    std::int64_t entities = 0;       // as seqeval finds them by default
    std::int64_t cut_sentences = 0;  // longer than --max-length
    std::int64_t cut_words = 0;      // of these sentences; they are in no row
    std::int64_t shard_bytes = 0;
};

struct PreparedTagged {
    std::vector<PreparedTaggedSet> sets{};
    std::vector<std::string> tags{};
    std::int64_t vocabulary = 0;  // pieces
};

/// The shards' attribute that holds the tags or classes, one a line, and the file beside them.
constexpr const char* labels_name = "labels.txt";

/// Writes OUTPUT/train-00000-of-00001.h5 and so on: words with tags as rows for a token classifier
/// (docs/finetuning.md), with the vocabulary and the tags as attributes. Holds a set in memory. The
/// same input gives the same bytes. The files appear when all are complete. Throws MissingInput,
/// BadData that names file and line, BadConfig or IoError.
PreparedTagged prepare_tagged(const PrepareTaggedOptions& options);

}  // namespace hetseq
