#include "hetseq/text/bert/wordpiece.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/bert/valid_characters.hpp"
#include "hetseq/text/code_points.hpp"
#include "hetseq/text/utf8.hpp"

#include "text/piece_trie.hpp"

namespace hetseq {

namespace {

constexpr std::string_view continuation = "##";
constexpr std::size_t most_shown = 80;          // bytes of a piece in a message
constexpr std::size_t most_piece_bytes = 1024;  // the trie is built as deep as a piece is long
constexpr std::size_t most_bytes = std::size_t{48} << 20;  // 12 bytes of the trie for each at most
constexpr std::size_t most_pieces = 4'000'000;             // 4 s

std::string vocabulary_line(const std::string& origin, std::size_t line) {
    return origin + ", line " + std::to_string(line);
}

void check_size(std::size_t bytes, const std::string& origin) {
    if (bytes > most_bytes)
        throw BadData(origin + " is too large for a vocabulary",
                      "it has more than 48 MiB",
                      "give a vocabulary of WordPiece, such as BERT's vocab.txt");
}

bool begins_or_ends_with_blank(std::string_view line) {
    const auto may_be_blank = [](char byte) {
        return static_cast<unsigned char>(byte) <= ' ' || static_cast<unsigned char>(byte) >= 0x80;
    };
    return line.empty() || may_be_blank(line.front()) || may_be_blank(line.back());
}

bool is_blank_of_ascii(char byte) {
    return static_cast<unsigned char>(byte) < 0x80 && is_blank(static_cast<unsigned char>(byte));
}

// A line as google-research takes it: without the blanks around it. Where nothing else is left, the
// line itself is the piece, which no text has, but whose id is taken. Empty for a line of ASCII's
// blanks.
std::string piece_of(std::string_view line) {
    if (!begins_or_ends_with_blank(line))
        return std::string{line};
    std::string piece = encode_utf8(without_blanks_around(decode_valid_characters(line)));
    if (!piece.empty() && piece != continuation)
        return piece;
    return std::all_of(line.begin(), line.end(), is_blank_of_ascii) ? std::string{}
                                                                    : std::string{line};
}

// The pieces by their ids.
std::vector<std::string> pieces_of(std::string_view bytes, const std::string& origin) {
    check_size(bytes.size(), origin);
    bytes = begin_of_text(bytes, origin);
    std::vector<std::string> pieces;
    while (!bytes.empty()) {
        const std::string_view line = take_line(bytes);
        const auto place = [&] { return vocabulary_line(origin, pieces.size() + 1); };
        if (valid_utf8_bytes(line) != line.size())
            throw BadData(place() + " is not UTF-8", "", "convert the vocabulary to UTF-8");
        check_line_end(line, place);
        if (line.size() > most_piece_bytes)
            throw BadData(place() + " is no piece",
                          "it has more than " + std::to_string(most_piece_bytes) + " bytes",
                          "write one piece in each line");
        if (pieces.size() == most_pieces)
            throw BadData(place() + " is one piece too many",
                          "a vocabulary has at most " + std::to_string(most_pieces),
                          "give a vocabulary of WordPiece, such as BERT's vocab.txt");
        if (pieces.emplace_back(piece_of(line)).empty())
            throw BadData(vocabulary_line(origin, pieces.size()) + " holds no piece",
                          "the line is blank",
                          "write one piece in each line");
    }
    if (pieces.empty())
        throw BadData(origin + " holds no pieces",
                      "it is empty",
                      "give a vocabulary of WordPiece, such as BERT's vocab.txt");
    return pieces;
}

using Repeat = std::pair<std::int32_t, std::int32_t>;  // a later id and the one before it
constexpr Repeat no_repeat{std::numeric_limits<std::int32_t>::max(), 0};

// Sorts them; gives the one that comes first in the file and repeats another.
Repeat sort_and_find_repeat(std::vector<PieceTrie::Piece>& pieces) {
    std::sort(pieces.begin(), pieces.end());
    Repeat first = no_repeat;
    for (std::size_t i = 1; i < pieces.size(); ++i)
        if (pieces[i].first == pieces[i - 1].first)
            first = std::min(first, {pieces[i].second, pieces[i - 1].second});
    return first;
}

bool continues_a_word(std::string_view piece) {
    return piece.size() > continuation.size() && piece.starts_with(continuation);
}

PieceTrie trie_of(const std::vector<std::string>& pieces, const std::string& origin) {
    std::vector<PieceTrie::Piece> first, continuing;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::string_view piece = pieces[i];
        const auto id = static_cast<std::int32_t>(i);
        if (continues_a_word(piece))
            continuing.emplace_back(piece.substr(continuation.size()), id);
        else
            first.emplace_back(piece, id);
    }
    const Repeat repeat = std::min(sort_and_find_repeat(first), sort_and_find_repeat(continuing));
    if (repeat != no_repeat)
        throw BadData(vocabulary_line(origin, static_cast<std::size_t>(repeat.first) + 1) +
                          " repeats a piece",
                      "'" + pieces[static_cast<std::size_t>(repeat.first)].substr(0, most_shown) +
                          "' is in line " + std::to_string(repeat.second + 1) + " already",
                      "remove one of the two lines; the ids behind it change");
    return {std::move(first), std::move(continuing)};
}

std::size_t characters_in_piece(std::string_view utf8) {
    return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
    }));
}

}  // namespace

struct WordPiece::State {
    State(std::string_view bytes, std::string name)
        : origin{std::move(name)},
          pieces{pieces_of(bytes, origin)},
          trie{trie_of(pieces, origin)} {}

    std::string origin;
    std::vector<std::string> pieces;  // by id
    PieceTrie trie;
    std::int32_t unknown_id = 0;
};

WordPiece WordPiece::parse(std::string_view bytes, const std::string& origin) {
    auto state = std::make_shared<State>(bytes, origin);
    WordPiece result{state};
    state->unknown_id = result.id_of(unknown);
    return result;
}

WordPiece WordPiece::read(const std::filesystem::path& file) {
    check_text_file(file);
    std::ifstream stream{file, std::ios::binary};
    if (!stream)
        throw MissingInput(
            "cannot open " + file.string(), std::strerror(errno), "give a file that can be read");
    std::error_code is_no_file;
    if (const auto size = std::filesystem::file_size(file, is_no_file); !is_no_file)
        check_size(size, file.string());
    const std::string bytes{std::istreambuf_iterator<char>{stream}, {}};
    if (stream.bad())
        throw IoError("cannot read " + file.string(), std::strerror(errno));
    return parse(
        file.extension() == ".json" ? vocabulary_of_tokenizer_json(bytes, file.string()) : bytes,
        file.string());
}

std::int64_t WordPiece::size() const {
    return std::ssize(state_->pieces);
}

std::int32_t WordPiece::unknown_id() const {
    return state_->unknown_id;
}

const std::string& WordPiece::piece(std::int32_t id) const {
    HETSEQ_ASSERT(id >= 0 && id < size());
    return state_->pieces[static_cast<std::size_t>(id)];
}

std::string WordPiece::lines() const {
    std::string text;
    for (const std::string& piece : state_->pieces)
        text.append(piece).append("\n");
    return text;
}

bool WordPiece::continues_word(std::int32_t id) const {
    return piece(id).starts_with(continuation);
}

std::optional<std::int32_t> WordPiece::find(std::string_view piece) const {
    const bool continues = continues_a_word(piece);
    const std::string_view text = piece.substr(continues ? continuation.size() : 0);
    const PieceTrie::Match match = state_->trie.longest(
        continues ? PieceTrie::Root::continuing : PieceTrie::Root::first, text);
    const bool is_whole = match.bytes == text.size() && match.bytes > 0;
    return is_whole ? std::optional{match.id} : std::nullopt;
}

std::int32_t WordPiece::id_of(std::string_view piece) const {
    if (const auto id = find(piece))
        return *id;
    throw BadData(state_->origin + " has no piece '" + std::string(piece) + "'",
                  "it is needed, and the file has " + std::to_string(size()) + " others",
                  "give the vocab.txt of a BERT model, or add it as the last line");
}

void WordPiece::append_pieces(std::string_view word,
                              std::size_t most_characters,
                              std::vector<std::int32_t>& ids) const {
    const std::size_t before = ids.size();
    bool is_known = word.size() <= most_characters || characters_in_piece(word) <= most_characters;
    PieceTrie::Root root = PieceTrie::Root::first;
    while (is_known && !word.empty()) {
        const PieceTrie::Match match = state_->trie.longest(root, word);
        is_known = match.bytes > 0;
        word.remove_prefix(match.bytes);
        ids.push_back(match.id);
        root = PieceTrie::Root::continuing;
    }
    if (is_known)
        return;
    ids.resize(before);
    ids.push_back(state_->unknown_id);
}

}  // namespace hetseq
