#include "prepare_classification.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/prepare/prepare_classified.hpp"

#include "app/commands/table_cells.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_shown_labels = 20;

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
        const PrepareClassifiedOptions options = context.words.read(prepare_classified_options());
        if (context.world.rank() != 0)
            return;
        const PreparedClassified prepared = prepare_classified(options);
        warn_of_cut_rows(prepared, options.max_length);
        std::fputs(prepared_classified_text(prepared, options.is_number).c_str(), stdout);
    });
}

}  // namespace hetseq
