#include "prepare_classification.hpp"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/util/name_list.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

#include "bert_text_options.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "table_cells.hpp"

#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/data/prepare_classified.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t longest_sequence = 65536;
constexpr std::size_t most_shown_labels = 20;

std::optional<TableFormat> format_of(const CommandWords& words) {
    const std::string& name = words.choice("format", {"auto", "tsv", "csv"});
    if (name == "auto")
        return std::nullopt;
    return name == "csv" ? TableFormat::csv : TableFormat::tsv;
}

PrepareClassifiedOptions classified_options(const CommandWords& words) {
    return {.train = split_file_names(words.text("input")),
            .valid = split_file_names(words.text("valid-input")),
            .test = split_file_names(words.text("test-input")),
            .vocabulary = words.text("vocab"),
            .text = bert_text_options(words),
            .labels = words.text("labels"),
            .is_number = words.has("numbers"),
            .output = words.text("output"),
            .text_column = words.text("text-column"),
            .pair_column = words.text("pair-column"),
            .label_column = words.text("label-column"),
            .has_header = words.has("header"),
            .format = format_of(words),
            .max_length = words.whole_number("max-length", 5, longest_sequence),
            .shards = words.whole_number("shards", 1, most_shards),
            .overwrite = words.has("overwrite")};
}

// A column for each set; too many labels are left out.
std::string labels_text(const PreparedClassified& prepared) {
    std::vector<std::vector<std::string>> rows{{"label"}};
    for (const PreparedClassifiedSet& set : prepared.sets)
        rows.front().push_back(set.name);
    for (std::size_t i = 0; i < prepared.labels.size() && i < most_shown_labels; ++i) {
        rows.push_back({prepared.labels[i]});
        for (const PreparedClassifiedSet& set : prepared.sets)
            rows.back().push_back(whole(set.rows_of_label.at(i)));
    }
    std::string text = format_table(rows);
    if (prepared.labels.size() > most_shown_labels)
        text += "and " + std::to_string(prepared.labels.size() - most_shown_labels) +
                " other labels (labels.txt)\n";
    return text;
}

std::string prepared_classified_text(const PreparedClassified& prepared, bool is_number) {
    std::vector<std::vector<std::string>> rows{
        {"set", "rows", "pieces", "unknown", "cut", "pieces cut", "MB"}};
    for (const PreparedClassifiedSet& set : prepared.sets)
        rows.push_back({set.name,
                        whole(set.rows),
                        whole(set.pieces),
                        whole(set.unknown),
                        whole(set.cut_rows),
                        whole(set.cut_pieces),
                        megabytes(set.shard_bytes)});
    return format_table(rows) + "\n" +
           (is_number ? "Labels are numbers to predict.\n" : labels_text(prepared)) +
           count_text(prepared.vocabulary, "piece") + " in the vocabulary\n";
}

void warn_of_cut_rows(const PreparedClassified& prepared, std::int64_t max_length) {
    for (const PreparedClassifiedSet& set : prepared.sets)
        if (set.cut_rows > 0)
            log::warn(count_text(set.cut_rows, "row") + " of " + set.name + " had more than " +
                      std::to_string(max_length) +
                      " pieces: " + count_text(set.cut_pieces, "piece") +
                      " at their ends were left out. --max-length allows more, as far as the "
                      "model has positions");
}

}  // namespace

// One rank suffices: labelled text is small.
void prepare_classification_of(const CommandContext& context) {
    agree_on(context.world, [&] {
        const PrepareClassifiedOptions options = classified_options(context.words);
        if (context.world.rank() != 0)
            return;
        const PreparedClassified prepared = prepare_classified(options);
        warn_of_cut_rows(prepared, options.max_length);
        std::fputs(prepared_classified_text(prepared, options.is_number).c_str(), stdout);
    });
}

}  // namespace hetseq
