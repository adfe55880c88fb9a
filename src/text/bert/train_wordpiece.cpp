#include "hetseq/text/bert/train_wordpiece.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "hetseq/util/error.hpp"
#include "hetseq/text/bert/valid_characters.hpp"
#include "hetseq/text/code_points.hpp"

namespace hetseq {

namespace {

using Symbol = std::uint32_t;  // the number of a piece
using Pair = std::uint64_t;    // two neighbouring pieces

constexpr const char* first_pieces[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr std::string_view continuing_mark = "##";

Pair pair_of(Symbol left, Symbol right) {
    return Pair{left} << 32 | right;
}

bool is_ascii_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

// Pieces by number.
class PieceTable {
public:
    Symbol add(const std::string& piece) {
        const auto [found, is_new] = numbers_.emplace(piece, static_cast<Symbol>(pieces_.size()));
        if (is_new)
            pieces_.push_back(piece);
        return found->second;
    }
    std::string joined(Pair pair) const {
        const std::string& right = pieces_[static_cast<Symbol>(pair)];
        return pieces_[pair >> 32] + right.substr(continuing_mark.size());
    }
    std::int64_t size() const { return std::ssize(pieces_); }
    std::vector<std::string> take() { return std::move(pieces_); }

private:
    std::vector<std::string> pieces_;
    std::unordered_map<std::string, Symbol> numbers_;
};

// The most frequent characters, in their order.
std::vector<char32_t> alphabet_of(const BertWordCounts::Words& words, std::int64_t most) {
    std::map<char32_t, std::int64_t> counts;
    for (const auto& [word, count] : words)
        for (const char32_t character : decode_utf8(word))
            counts[character] += count;
    std::vector<std::pair<char32_t, std::int64_t>> kept(counts.begin(), counts.end());
    std::stable_sort(
        kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    kept.resize(std::min(kept.size(), static_cast<std::size_t>(most)));
    std::vector<char32_t> alphabet;
    for (const auto& [character, count] : kept)
        alphabet.push_back(character);
    std::sort(alphabet.begin(), alphabet.end());
    return alphabet;
}

struct CountedWord {
    std::vector<Symbol> symbols;
    std::int64_t count = 0;
};

// The words as single characters, without those that are not in `alphabet`.
std::vector<CountedWord> divided_words(const BertWordCounts::Words& words,
                                       const std::vector<char32_t>& alphabet,
                                       PieceTable& pieces) {
    for (const char32_t character : alphabet)
        pieces.add(encode_utf8({&character, 1}));
    std::vector<CountedWord> divided;
    for (const auto& [word, count] : words) {
        CountedWord symbols{{}, count};
        const std::u32string characters = decode_utf8(word);
        for (std::size_t i = 0; i < characters.size(); ++i) {
            if (!std::binary_search(alphabet.begin(), alphabet.end(), characters[i]))
                continue;
            const std::string piece = encode_utf8({&characters[i], 1});
            symbols.symbols.push_back(
                pieces.add(i == 0 ? piece : std::string(continuing_mark) + piece));
        }
        divided.push_back(std::move(symbols));
    }
    return divided;
}

// Joins pairs in all words, and knows how often each pair occurs.
class PairJoiner {
public:
    explicit PairJoiner(std::vector<CountedWord> words) : words_{std::move(words)} {
        for (std::size_t word = 0; word < words_.size(); ++word)
            for_pairs(word, [&](Pair pair, std::int64_t count) {
                pairs_[pair].count += count;
                note_place(pair, word);
            });
        for (const auto& [pair, found] : pairs_)
            queue_.push({found.count, pair});
    }

    struct Candidate {
        std::int64_t count = 0;
        Pair pair = 0;
        // The last one is the most frequent, of equal ones that of the earlier pieces.
        bool operator<(const Candidate& other) const {
            return count != other.count ? count < other.count : pair > other.pair;
        }
    };

    /// A count of 0: there is none left.
    Candidate most_frequent() {
        while (!queue_.empty()) {
            const Candidate candidate = queue_.top();
            const std::int64_t now = pairs_[candidate.pair].count;
            if (candidate.count == now)
                return candidate;
            queue_.pop();  // counted before some of its places were joined otherwise
            if (now > 0)
                queue_.push({now, candidate.pair});
        }
        return {};
    }

    void join(Pair pair, Symbol joined) {
        std::vector<std::uint32_t> places = std::move(pairs_[pair].words);
        std::sort(places.begin(), places.end());
        places.erase(std::unique(places.begin(), places.end()), places.end());
        grown_.clear();
        for (const std::uint32_t place : places) {
            for_pairs(place, [&](Pair one, std::int64_t count) { pairs_[one].count -= count; });
            replace(words_[place].symbols, pair, joined);
            for_pairs(place, [&](Pair one, std::int64_t count) {
                pairs_[one].count += count;
                if (one >> 32 == joined || static_cast<Symbol>(one) == joined) {
                    note_place(one, place);
                    grown_.push_back(one);
                }
            });
        }
        std::sort(grown_.begin(), grown_.end());
        grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
        for (const Pair grown : grown_)
            queue_.push({pairs_[grown].count, grown});
    }

private:
    struct Found {
        std::int64_t count = 0;
        std::vector<std::uint32_t> words;  // that have or had the pair, some several times
    };

    static void replace(std::vector<Symbol>& symbols, Pair pair, Symbol joined) {
        std::size_t end = 0;
        for (std::size_t i = 0; i < symbols.size(); ++i) {
            const bool is_pair =
                i + 1 < symbols.size() && pair_of(symbols[i], symbols[i + 1]) == pair;
            symbols[end++] = is_pair ? joined : symbols[i];
            i += is_pair ? 1 : 0;
        }
        symbols.resize(end);
    }

    // Calls `take` with each pair of the word and the word's count.
    template <class Take>
    void for_pairs(std::size_t word, Take take) {
        const auto& [symbols, count] = words_[word];
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
            take(pair_of(symbols[i], symbols[i + 1]), count);
    }

    void note_place(Pair pair, std::size_t word) {
        std::vector<std::uint32_t>& words = pairs_[pair].words;
        if (words.empty() || words.back() != word)
            words.push_back(static_cast<std::uint32_t>(word));
    }

    std::vector<CountedWord> words_;
    std::unordered_map<Pair, Found> pairs_;
    std::priority_queue<Candidate> queue_;
    std::vector<Pair> grown_;  // pairs that a join made more frequent
};

}  // namespace

void BertWordCounts::add_line(std::string_view line) {
    while (!line.empty()) {
        const auto begin = std::find_if_not(line.begin(), line.end(), is_ascii_blank);
        const auto end = std::find_if(begin, line.end(), is_ascii_blank);
        const std::string_view text{begin, end};
        line = {end, line.end()};
        if (text.empty())
            continue;
        const auto found = counts_.find(text);
        if (found != counts_.end())
            ++found->second;
        else
            counts_.emplace(text, 1);
    }
}

BertWordCounts::Words BertWordCounts::words() const {
    BasicTokenizer tokenizer{options_};
    std::map<std::string, std::int64_t> counts;
    for (const auto& [text, count] : counts_) {
        const BasicWords& words = tokenizer.words(decode_valid_characters(text));
        for (std::size_t i = 0; i < words.size(); ++i)
            counts[encode_utf8(words.word(i))] += count;
    }
    return {counts.begin(), counts.end()};
}

std::vector<std::string> train_wordpiece(const BertWordCounts::Words& words,
                                         const WordPieceTrainingOptions& options) {
    if (words.empty())
        throw BadData(
            "no vocabulary can be trained", "the text has no words", "give lines of text");
    PieceTable pieces;
    for (const char* piece : first_pieces)
        pieces.add(piece);
    PairJoiner joiner{divided_words(words, alphabet_of(words, options.most_characters), pieces)};
    if (pieces.size() > options.pieces)
        throw BadData("a vocabulary of " + std::to_string(options.pieces) + " pieces is too small",
                      "the text's characters alone need " + std::to_string(pieces.size()),
                      "allow as many pieces, or fewer characters");
    while (pieces.size() < options.pieces) {
        const PairJoiner::Candidate candidate = joiner.most_frequent();
        if (candidate.count < std::max<std::int64_t>(options.least_count, 1))
            break;
        joiner.join(candidate.pair, pieces.add(pieces.joined(candidate.pair)));
    }
    return pieces.take();
}

}  // namespace hetseq
