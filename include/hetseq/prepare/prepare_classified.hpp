#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/text/bert/basic_tokenizer.hpp"
#include "hetseq/text/table_reader.hpp"

namespace hetseq {

struct PrepareClassifiedOptions {
    /// Tables, plain or gzip: a text, or two, and its label in each row.
    std::vector<std::string> train{};
    std::vector<std::string> valid{};  // may be empty
    std::vector<std::string> test{};   // may be empty
    std::string vocabulary{};          // the file of WordPiece's pieces
    BasicTokenizerOptions text{};
    std::string labels{};    // a file of labels, one a line; empty: those that occur
    bool is_number = false;  // labels are numbers to predict (regression)
    std::string output{};    // folder, made where it is missing
    // Columns by number, from 1, or by the name that the first row gives.
    std::string text_column = "1";
    std::string pair_column{};            // of the second text; empty: there is none
    std::string label_column = "0";       // 0: the last
    bool has_header = false;              // the first row holds names
    std::optional<TableFormat> format{};  // otherwise by the files' names
    std::int64_t max_length = 512;        // pieces of a row, [CLS] and [SEP] included; at least 5
    std::int64_t shards = 1;              // of each set
    bool overwrite = false;               // shards of the same sets in `output`
};

OptionsOf<PrepareClassifiedOptions> prepare_classified_options();

/// A set that was written: shards NAME-*.h5.
struct PreparedClassifiedSet {
    std::string name;  // "train", "valid", "test"
    std::int64_t rows = 0;
    std::int64_t pieces = 0;
    std::int64_t unknown = 0;     // of these
    std::int64_t cut_rows = 0;    // longer than --max-length
    std::int64_t cut_pieces = 0;  // of these rows; they are in no row
    std::int64_t shard_bytes = 0;
    std::vector<std::int64_t> rows_of_label{};  // empty where labels are numbers
};

struct PreparedClassified {
    std::vector<PreparedClassifiedSet> sets{};
    std::vector<std::string> labels{};  // one name where they are numbers
    std::int64_t vocabulary = 0;        // pieces
};

/// Writes OUTPUT/train-00000-of-00001.h5 and so on: texts with labels as rows for a sequence
/// classifier (docs/finetuning.md), with the vocabulary and the labels as attributes. Holds a set
/// in memory. The same input gives the same bytes. The files appear when all are complete. Throws
/// MissingInput, BadData that names file and line, BadConfig or IoError.
PreparedClassified prepare_classified(const PrepareClassifiedOptions& options);

}  // namespace hetseq
