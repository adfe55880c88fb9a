#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/text/bert/basic_tokenizer.hpp"
#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/data/files/ragged_shard_writer.hpp"

namespace hetseq {

/// The files of a text with labels, by set: "train" and, where they are given, "valid" and "test".
struct LabelledFiles {
    std::string set;
    const std::vector<std::string>& files;
};

/// The sets that have files.
std::vector<LabelledFiles> sets_with_files(const std::vector<std::string>& train,
                                           const std::vector<std::string>& valid,
                                           const std::vector<std::string>& test);

/// Throws BadConfig for no text to train on, or a number of shards that no name holds.
void check_labelled_options(const std::vector<std::string>& train, std::int64_t shards);

/// The names of labels in `path`, which must hold all of `used`. Throws what reading throws, and
/// BadData. `kind`: "tag", "label".
std::vector<std::string> read_labels(const std::string& path,
                                     const std::vector<std::string>& used,
                                     const std::string& kind);

/// Writes sets of labelled text as shards NAME-*.h5 that hold the vocabulary, the tokenizer and the
/// labels, and these as files beside them. They appear when all are complete.
class LabelledShards {
public:
    /// Throws BadConfig or IoError.
    LabelledShards(const std::string& output,
                   std::int64_t shards,
                   bool overwrite,
                   const WordPiece& pieces,
                   const BasicTokenizerOptions& tokenizer,
                   const std::vector<std::string>& labels);

    /// `append(row, writer)` gives the writer each row of a set, from 0. Returns the shards' size
    /// [bytes].
    std::int64_t write(const std::string& set,
                       const std::vector<RaggedShardWriter::Field>& fields,
                       std::int64_t rows,
                       const std::function<void(std::int64_t, RaggedShardWriter&)>& append);

    /// All sets are written: the files get their names.
    void commit();

private:
    struct Text {
        std::string name;
        std::string text;
    };

    std::filesystem::path folder_;
    std::int64_t shards_of_set_;
    std::vector<Text> texts_;
    std::vector<RaggedShardWriter> shards_;
};

template <class Row>
struct LabelledSet {
    std::string name;
    std::vector<Row> rows;
};

/// The sets that have files. `read(file)` gives a file's rows. Throws what it throws.
template <class Read>
auto read_labelled_sets(const std::vector<LabelledFiles>& files_of_sets, const Read& read) {
    using Rows = decltype(read(std::string()));
    std::vector<LabelledSet<typename Rows::value_type>> sets;
    for (const auto& [name, files] : files_of_sets) {
        auto& set = sets.emplace_back();
        set.name = name;
        for (const std::string& file : files) {
            Rows rows = read(file);
            std::move(rows.begin(), rows.end(), std::back_inserter(set.rows));
        }
    }
    return sets;
}

/// Writes the rows that `encoder` makes of the sets' rows, all files at once. Returns what it
/// counted in each set.
template <class Counts, class Encoder, class Row>
std::vector<Counts> write_labelled_sets(LabelledShards& shards,
                                        Encoder& encoder,
                                        const std::vector<LabelledSet<Row>>& sets) {
    std::vector<Counts> counted;
    for (const LabelledSet<Row>& set : sets) {
        Counts& counts = counted.emplace_back();
        counts.name = set.name;
        counts.shard_bytes = shards.write(
            set.name,
            encoder.fields(),
            std::ssize(set.rows),
            [&](std::int64_t row, RaggedShardWriter& writer) {
                encoder.append(set.rows[static_cast<std::size_t>(row)], writer, counts);
            });
    }
    shards.commit();
    return counted;
}

}  // namespace hetseq
