#include "prepare_ner.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/prepare/prepare_tagged.hpp"

#include "app/commands/table_cells.hpp"

namespace hetseq {

namespace {

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
        const PrepareTaggedOptions options = context.words.read(prepare_tagged_options());
        if (context.world.rank() != 0)
            return;
        const PreparedTagged prepared = prepare_tagged(options);
        warn_of_cut_sentences(prepared, options.max_length);
        std::fputs(prepared_tagged_text(prepared).c_str(), stdout);
    });
}

}  // namespace hetseq
