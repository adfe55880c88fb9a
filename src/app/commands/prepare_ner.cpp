#include "prepare_ner.hpp"

#include <cstdint>
#include <cstdio>
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
#include "hetseq/data/prepare_tagged.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_columns = 1000;
constexpr std::int64_t longest_row = 65536;

PrepareTaggedOptions tagged_options(const CommandWords& words) {
    return {.train = split_file_names(words.text("input")),
            .valid = split_file_names(words.text("valid-input")),
            .test = split_file_names(words.text("test-input")),
            .vocabulary = words.text("vocab"),
            .text = bert_text_options(words),
            .tags = words.text("labels"),
            .output = words.text("output"),
            .word_column = words.whole_number("word-column", 1, most_columns),
            .tag_column = words.whole_number("tag-column", 0, most_columns),
            .max_length = words.whole_number("max-length", 3, longest_row),
            .shards = words.whole_number("shards", 1, most_shards),
            .overwrite = words.has("overwrite")};
}

std::string prepared_tagged_text(const PreparedTagged& prepared) {
    std::vector<std::vector<std::string>> rows{
        {"set", "sentences", "words", "entities", "pieces", "unknown", "cut", "words cut", "MB"}};
    for (const PreparedTaggedSet& set : prepared.sets)
        rows.push_back({set.name,
                        whole(set.sentences),
                        whole(set.words),
                        whole(set.entities),
                        whole(set.pieces),
                        whole(set.unknown),
                        whole(set.cut_sentences),
                        whole(set.cut_words),
                        megabytes(set.shard_bytes)});
    return format_table(rows) + "\n" + count_text(prepared.vocabulary, "piece") +
           " in the vocabulary; labels: " + join(prepared.tags, ", ") + "\n";
}

void warn_of_cut_sentences(const PreparedTagged& prepared, std::int64_t max_length) {
    for (const PreparedTaggedSet& set : prepared.sets)
        if (set.cut_sentences > 0)
            log::warn(count_text(set.cut_sentences, "sentence") + " of " + set.name +
                      " had more than " + std::to_string(max_length) +
                      " pieces: " + count_text(set.cut_words, "word") +
                      " at their ends were left out. --max-length allows more, as far as the "
                      "model has positions");
}

}  // namespace

// One rank suffices: labelled text is small.
void prepare_ner_of(const CommandContext& context) {
    agree_on(context.world, [&] {
        const PrepareTaggedOptions options = tagged_options(context.words);
        if (context.world.rank() != 0)
            return;
        const PreparedTagged prepared = prepare_tagged(options);
        warn_of_cut_sentences(prepared, options.max_length);
        std::fputs(prepared_tagged_text(prepared).c_str(), stdout);
    });
}

}  // namespace hetseq
