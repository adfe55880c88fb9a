#include "translation_vocabularies.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/dictionary.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"
#include "hetseq/prepare/prepare_translation.hpp"

namespace hetseq {

namespace {

// A sample of lines, drawn by a key and given in their order.
class SampledLines {
public:
    SampledLines(std::span<const TextIndex> texts, std::int64_t count, std::uint64_t key)
        : cursor_{texts},
          permutation_{total_lines(texts), key},
          count_{count > 0 ? count : total_lines(texts)} {}

    bool next(std::string& line) {
        for (; line_ < permutation_.size(); ++line_) {
            const std::string_view read = cursor_.next();
            if (permutation_(line_) >= count_)
                continue;
            line = read;
            ++line_;
            return true;
        }
        return false;
    }

private:
    TextCursor cursor_;
    KeyedPermutation permutation_;
    std::int64_t count_;
    std::int64_t line_ = 0;  // the next one
};

std::string trained_subwords(const PrepareTranslationOptions& options,
                             std::span<const TextIndex> texts) {
    SampledLines lines(texts, options.sample, mix_keys(options.seed, 0));
    TrainedSubwords trained =
        train_subwords(options.subwords, [&](std::string& line) { return lines.next(line); });
    const std::string of_lines = " of " + count_text(trained.lines, "line") +
                                 " were left out of the training of a vocabulary (";
    if (trained.too_long > 0)
        log::warn(std::to_string(trained.too_long) + of_lines +
                  "they are longer than --max-sentence-length " +
                  std::to_string(options.subwords.max_sentence_length) + " bytes)");
    if (trained.reserved > 0)
        log::warn(std::to_string(trained.reserved) + of_lines +
                  "they hold U+2585, which SentencePiece uses itself)");
    return std::move(trained.model);
}

// Counts the words in this rank's pieces of the texts.
WordCounts own_words(const HostComm& world, std::span<const TextIndex> texts) {
    WordCounts words;
    TextCursor cursor{texts};
    std::int64_t before = 0;  // lines of the files before
    std::int64_t piece = 0;
    for (const TextIndex& text : texts) {
        for (std::size_t i = 0; i < text.places.size(); ++i) {
            if (piece++ % world.size() != world.rank())
                continue;
            const bool is_last = i + 1 == text.places.size();
            const std::int64_t end = is_last ? text.lines : text.places[i + 1].line;
            cursor.move_to(before + text.places[i].line);
            for (std::int64_t line = text.places[i].line; line < end; ++line)
                words.add_line(cursor.next());
        }
        before += text.lines;
    }
    return words;
}

// On rank 0 the dictionary's bytes, elsewhere nothing. Holds the words of one other rank at a time.
std::string counted_dictionary(const HostComm& world,
                               std::span<const TextIndex> texts,
                               std::int64_t most_ids) {
    WordCounts words = agree_on(world, [&] { return own_words(world, texts); });
    for (int rank = 1; rank < world.size(); ++rank) {
        const std::string text = world.broadcast(rank == world.rank() ? words.text() : "", rank);
        if (world.rank() == 0)
            words.add_text(text);
    }
    return world.rank() == 0 ? words.dictionary(most_ids) : "";
}

Vocabulary parsed(const HostComm& world, std::string bytes, const std::string& origin) {
    bytes = world.broadcast(std::move(bytes), 0);
    return agree_on(world, [&] { return Vocabulary::parse(std::move(bytes), origin); });
}

Vocabulary trained(const HostComm& world,
                   const PrepareTranslationOptions& options,
                   std::span<const TextIndex> texts) {
    if (options.type == VocabularyType::dictionary)
        return parsed(world,
                      counted_dictionary(world, texts, options.subwords.vocab_size),
                      "the counted dictionary");
    std::string bytes = agree_on(world, [&] {
        return world.rank() == 0 ? trained_subwords(options, texts) : std::string();
    });
    return parsed(world, std::move(bytes), "the trained SentencePiece model");
}

Vocabulary given(const HostComm& world, const std::string& file) {
    std::string bytes = agree_on(
        world, [&] { return world.rank() == 0 ? Vocabulary::read(file).bytes() : std::string(); });
    return parsed(world, std::move(bytes), file);
}

}  // namespace

TranslationVocabularies translation_vocabularies(const HostComm& world,
                                                 const PrepareTranslationOptions& options,
                                                 std::span<const TextIndex> sources,
                                                 std::span<const TextIndex> targets) {
    const auto of_side = [&](const std::string& file, std::span<const TextIndex> texts) {
        return file.empty() ? trained(world, options, texts) : given(world, file);
    };
    if (!options.joined)
        return {of_side(options.source_vocabulary, sources),
                of_side(options.target_vocabulary, targets)};
    std::vector<TextIndex> both(sources.begin(), sources.end());
    both.insert(both.end(), targets.begin(), targets.end());
    const Vocabulary joined = of_side(options.source_vocabulary, both);
    return {joined, joined};
}

}  // namespace hetseq
