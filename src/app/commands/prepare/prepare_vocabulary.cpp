#include "prepare_vocabulary.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/prepare/files/text_index.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_pieces = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t longest_word = 200;  // characters, as the tokenizer's

// A word for a line, with its count before it.
std::string text_of(const BertWordCounts::Words& words) {
    std::string text;
    for (const auto& [word, count] : words)
        text.append(std::to_string(count)).append(" ").append(word).append("\n");
    return text;
}

BertWordCounts::Words words_from(const std::string& text) {
    BertWordCounts::Words words;
    for (const std::string& line : split(text, '\n')) {
        const std::size_t blank = line.find(' ');
        if (blank != std::string::npos)
            words.emplace_back(line.substr(blank + 1), std::stoll(line));
    }
    return words;
}

// Both in the order of their bytes.
BertWordCounts::Words sum_of(const BertWordCounts::Words& a, const BertWordCounts::Words& b) {
    BertWordCounts::Words all, sum;
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
    for (auto& [word, count] : all) {
        if (sum.empty() || sum.back().first != word)
            sum.emplace_back(std::move(word), 0);
        sum.back().second += count;
    }
    return sum;
}

// Collective. On rank 0 those of all ranks, elsewhere none.
BertWordCounts::Words count_words(const HostComm& world,
                                  const std::vector<std::string>& files,
                                  const BasicTokenizerOptions& options) {
    BertWordCounts counts{options};
    read_lines_among_ranks(world, files, [&](std::string_view line) { counts.add_line(line); });
    BertWordCounts::Words words = counts.words();
    for (int rank = 1; rank < world.size(); ++rank) {  // one rank's words at a time in memory
        const std::string text =
            world.broadcast(world.rank() == rank ? text_of(words) : std::string{}, rank);
        if (world.rank() == 0)
            words = sum_of(words, words_from(text));
    }
    return world.rank() == 0 ? words : BertWordCounts::Words{};
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

OptionsOf<WordPieceTrainingOptions> training_options() {
    using Of = WordPieceTrainingOptions;
    return OptionsOf<Of>()
        .add(
            &Of::pieces,
            whole_number_option(
                "vocab-size", "30000", "number of pieces, if the text has so many", 1, most_pieces))
        .add(&Of::least_count,
             whole_number_option("min-count",
                                 "2",
                                 "join two pieces that stand together so often or more",
                                 1,
                                 most_pieces))
        .add(
            &Of::most_characters,
            whole_number_option(
                "max-characters", "1000", "number of characters that have pieces", 1, most_pieces));
}

}  // namespace

OptionsOf<VocabularyOptions> vocabulary_options() {
    using Of = VocabularyOptions;
    return OptionsOf<Of>()
        .add(&Of::input, files_option("input", "the text; plain or gzip").required())
        .add(&Of::output,
             text_option("output", "FILE", "", "the file to write, a piece a line").required())
        .add(&Of::training, training_options())
        .add(&Of::text, basic_tokenizer_options())
        .add(&Of::overwrite, switch_option("overwrite", "replace the file where it exists"));
}

void prepare_vocabulary_of(const CommandContext& context) {
    const VocabularyOptions options = agree_on(context.world, [&] {
        VocabularyOptions given = context.words.read(vocabulary_options());
        if (context.world.rank() == 0)
            check_output_file(given.output, given.overwrite);
        return given;
    });
    const BertWordCounts::Words counted = count_words(context.world, options.input, options.text);
    agree_on(context.world, [&] {
        if (context.world.rank() != 0)
            return;
        std::string lines;
        for (const std::string& piece : train_wordpiece(counted, options.training))
            lines.append(piece).append("\n");
        write_atomically(options.output, lines);
        std::fputs(summary(options.output, lines, counted).c_str(), stdout);
    });
}

}  // namespace hetseq
