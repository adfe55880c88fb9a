#include "hetseq/prepare/prepare_classified.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/text/subwords/sequence_pieces.hpp"

#include "classified_text.hpp"
#include "labelled_shards.hpp"

namespace hetseq {

namespace {

constexpr const char* name_of_number = "number";  // where labels are numbers
constexpr std::int64_t least_length = 5;
constexpr std::size_t most_labels = 65536;

using ClassifiedSets = std::vector<LabelledSet<ClassifiedText>>;

void check_options(const PrepareClassifiedOptions& options) {
    check_labelled_options(options.train, options.shards);
    if (options.max_length < least_length)
        throw BadConfig("--max-length " + std::to_string(options.max_length),
                        "[CLS], two [SEP] and a piece of either text need room",
                        "give 5 or more");
    if (options.is_number && !options.labels.empty())
        throw BadConfig(
            "--labels with --numbers", "numbers have no list of labels", "leave one of them out");
    for (const auto& [option, column] : {std::pair{"--text-column", options.text_column},
                                         std::pair{"--label-column", options.label_column}})
        if (column.empty())
            throw BadConfig(
                std::string(option) + " names no column", "", "give a number or a name");
    if (is_last_column(options.text_column) || is_last_column(options.pair_column))
        throw BadConfig(
            "columns of texts are counted from 1", "", "give --text-column 1 and the like");
}

ClassifiedSets read_sets(const PrepareClassifiedOptions& options) {
    const ClassifiedColumns columns{.text = options.text_column,
                                    .pair = options.pair_column,
                                    .label = options.label_column,
                                    .is_number = options.is_number,
                                    .has_header = options.has_header,
                                    .format = options.format};
    return read_labelled_sets(
        sets_with_files(options.train, options.valid, options.test),
        [&](const std::string& file) { return read_classified_text(file, columns); });
}

// By number where all are numbers, otherwise by their bytes.
std::vector<std::string> labels_of(const ClassifiedSets& sets) {
    std::set<std::string> found;
    for (const auto& set : sets)
        for (const ClassifiedText& text : set.rows)
            found.insert(text.label);
    std::vector<std::string> labels(found.begin(), found.end());
    const auto is_number = [](const std::string& label) {
        return finite_number(label).has_value();
    };
    if (std::all_of(labels.begin(), labels.end(), is_number))
        std::stable_sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) {
            return *finite_number(a) < *finite_number(b);
        });
    return labels;
}

std::vector<std::string> label_set(const PrepareClassifiedOptions& options,
                                   const ClassifiedSets& sets) {
    if (options.is_number)
        return {name_of_number};
    const std::vector<std::string> used = labels_of(sets);
    std::vector<std::string> labels =
        options.labels.empty() ? used : read_labels(options.labels, used, "label");
    if (labels.size() < 2)
        throw BadData("the text has one label, '" + labels.front() + "'",
                      "a classifier tells labels apart",
                      "choose another column by --label-column");
    if (labels.size() > most_labels)
        throw BadData("the text has " + std::to_string(labels.size()) + " labels",
                      "65,536 are the most",
                      "choose another column by --label-column, or give --numbers");
    return labels;
}

/// Turns texts into rows of shards, and counts what it meets.
class ClassifiedEncoder {
public:
    ClassifiedEncoder(const WordPiece& pieces,
                      const std::vector<std::string>& labels,
                      const PrepareClassifiedOptions& options)
        : encoder_{pieces, options.text, options.max_length},
          pieces_{pieces.size()},
          options_{options} {
        for (const std::string& label : labels)
            numbers_.emplace(label, static_cast<std::int32_t>(numbers_.size()));
    }

    std::vector<RaggedShardWriter::Field> fields() const {
        std::vector<RaggedShardWriter::Field> fields{
            {"input_ids", pieces_},
            {"labels", options_.is_number ? 0 : std::ssize(numbers_), false}};
        if (!options_.pair_column.empty())
            fields.push_back({"second_segments", options_.max_length, false});
        return fields;
    }

    void append(const ClassifiedText& text,
                RaggedShardWriter& writer,
                PreparedClassifiedSet& counts) {
        const SequencePieces row = encoder_.encode(text.text, text.pair);
        writer.append(0, row.ids);
        append_label(text.label, writer, counts);
        if (text.pair) {
            const auto second = static_cast<std::int32_t>(row.second);
            writer.append(2, {&second, 1});
        }
        ++counts.rows;
        counts.pieces += std::ssize(row.ids) - (text.pair ? 3 : 2);
        counts.unknown += std::count(row.ids.begin(), row.ids.end(), encoder_.unknown_id());
        counts.cut_pieces += row.cut;
        counts.cut_rows += row.cut > 0 ? 1 : 0;
    }

private:
    void append_label(const std::string& label,
                      RaggedShardWriter& writer,
                      PreparedClassifiedSet& counts) const {
        if (options_.is_number) {
            writer.append_number(1, finite_number(label).value());
            return;
        }
        const std::int32_t index = numbers_.at(label);
        counts.rows_of_label.resize(numbers_.size());
        ++counts.rows_of_label[static_cast<std::size_t>(index)];
        writer.append(1, {&index, 1});
    }

    SequenceEncoder encoder_;
    std::int64_t pieces_;
    const PrepareClassifiedOptions& options_;
    std::map<std::string, std::int32_t> numbers_;  // of labels
};

}  // namespace

PreparedClassified prepare_classified(const PrepareClassifiedOptions& options) {
    check_options(options);
    const WordPiece pieces = WordPiece::read(options.vocabulary);
    const ClassifiedSets sets = read_sets(options);
    PreparedClassified prepared{.labels = label_set(options, sets), .vocabulary = pieces.size()};
    ClassifiedEncoder encoder{pieces, prepared.labels, options};
    LabelledShards shards{
        options.output, options.shards, options.overwrite, pieces, options.text, prepared.labels};
    prepared.sets = write_labelled_sets<PreparedClassifiedSet>(shards, encoder, sets);
    return prepared;
}

}  // namespace hetseq
