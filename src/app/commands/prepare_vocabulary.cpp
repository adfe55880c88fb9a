#include "prepare_vocabulary.hpp"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

#include "bert_text_options.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/train_wordpiece.hpp"
#include "hetseq/text/wordpiece.hpp"
#include "hetseq/data/files/text_reader.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_pieces = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t longest_word = 200;  // characters, as the tokenizer's

BertWordCounts::Words count_words(const std::vector<std::string>& files,
                                  const BasicTokenizerOptions& options) {
    BertWordCounts counts{options};
    for (const std::string& file : files) {
        TextReader reader{file};
        for (std::string_view line; reader.next(line);)
            counts.add_line(line);
    }
    return counts.words();
}

// What the vocabulary makes of the text that it was trained on.
std::string summary(const std::string& file,
                    const std::string& vocabulary,
                    const BertWordCounts::Words& words) {
    const WordPiece pieces = WordPiece::parse(vocabulary, file);
    std::int64_t word_count = 0, piece_count = 0;
    std::vector<std::int32_t> ids;
    for (const auto& [word, count] : words) {
        ids.clear();
        pieces.append_pieces(word, longest_word, ids);
        word_count += count;
        piece_count += std::ssize(ids) * count;
    }
    return file + ": " + count_text(pieces.size(), "piece") + " from " +
           count_text(word_count, "word") + ", " + count_text(std::ssize(words), "different one") +
           "; " +
           format_number(static_cast<double>(piece_count) / static_cast<double>(word_count), 4) +
           " pieces a word\n";
}

}  // namespace

void prepare_vocabulary_of(const CommandContext& context) {
    const CommandWords& words = context.words;
    agree_on(context.world, [&] {
        const WordPieceTrainingOptions options{
            .pieces = words.whole_number("vocab-size", 1, most_pieces),
            .least_count = words.whole_number("min-count", 1, most_pieces),
            .most_characters = words.whole_number("max-characters", 1, most_pieces)};
        const BasicTokenizerOptions basic = bert_text_options(words);
        if (context.world.rank() != 0)
            return;
        const BertWordCounts::Words counted = count_words(split(words.text("input"), ','), basic);
        std::string lines;
        for (const std::string& piece : train_wordpiece(counted, options))
            lines.append(piece).append("\n");
        const std::string& output = words.text("output");
        write_atomically(output, lines);
        std::fputs(summary(output, lines, counted).c_str(), stdout);
    });
}

}  // namespace hetseq
