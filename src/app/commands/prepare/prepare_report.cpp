#include "prepare_report.hpp"

#include <vector>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

#include "app/commands/table_cells.hpp"

namespace hetseq {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::vector<std::string> side_row(const PreparedSet& set,
                                  const std::string& name,
                                  const PreparedSide& side,
                                  std::int64_t ids) {
    const auto tokens = static_cast<double>(side.tokens);
    return {set.name,
            name,
            megabytes(side.text_bytes),
            whole(side.tokens),
            format_number(tokens / static_cast<double>(set.written), 4),
            percent_text(side.tokens == 0 ? 0 : static_cast<double>(side.unknown) / tokens),
            whole(ids)};
}

}  // namespace

std::string prepared_text(const PreparedTranslation& prepared) {
    Rows pairs{{"set",
                "pairs",
                "written",
                "empty source",
                "empty target",
                "too long",
                "unlike lengths",
                "shards",
                "MB"}};
    Rows sides{{"set", "side", "MB of text", "tokens", "in a sentence", "unknown", "vocabulary"}};
    std::int64_t read = 0;
    for (const PreparedSet& set : prepared.sets) {
        pairs.push_back({set.name,
                         whole(set.pairs),
                         whole(set.written),
                         whole(set.empty_source),
                         whole(set.empty_target),
                         whole(set.too_long),
                         whole(set.unlike_lengths),
                         whole(set.shards),
                         megabytes(set.shard_bytes)});
        sides.push_back(side_row(set, "source", set.source, prepared.source_ids));
        sides.push_back(side_row(set, "target", set.target, prepared.target_ids));
        read += set.pairs;
    }
    const double rate = 2 * static_cast<double>(read) / prepared.encoding_seconds;
    return format_table(pairs) + "\n" + format_table(sides) + "\nvocabularies in " +
           format_number(prepared.training_seconds, 3) + " s, shards in " +
           format_number(prepared.encoding_seconds, 3) + " s: " + format_number(rate, 3) +
           " sentences/s\n";
}

}  // namespace hetseq
