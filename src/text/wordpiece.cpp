#include "hetseq/text/wordpiece.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "hetseq/util/error.hpp"

#include "piece_trie.hpp"

#include "hetseq/text/code_points.hpp"
#include "hetseq/text/tokenizer_config.hpp"
#include "hetseq/text/utf8.hpp"
#include "hetseq/text/valid_characters.hpp"

namespace hetseq {

namespace {

constexpr std::string_view continuation = "##";
constexpr std::size_t most_shown = 80;          // bytes of a piece in a message
constexpr std::size_t most_piece_bytes = 1024;  // the trie is built as deep as a piece is long
constexpr std::size_t most_bytes = std::size_t{1} << 30;  // a node each at most: 31 bits

std::string vocabulary_line(const std::string& origin, std::size_t line) {
    return origin + ", line " + std::to_string(line);
}

// The pieces by their ids.
std::vector<std::string> pieces_of(std::string_view bytes, const std::string& origin) {
    if (bytes.size() > most_bytes)
        throw BadData(origin + " is too large for a vocabulary",
                      "it has more than 1 GiB",
                      "give a vocabulary of WordPiece, such as BERT's vocab.txt");
    std::vector<std::string> pieces;
    while (!bytes.empty()) {
        const std::string_view line = bytes.substr(0, bytes.find('\n'));
        bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
        const std::string place = vocabulary_line(origin, pieces.size() + 1);
        if (valid_utf8_bytes(line) != line.size())
            throw BadData(place + " is not UTF-8", "", "convert the vocabulary to UTF-8");
        if (line.size() > most_piece_bytes)
            throw BadData(place + " is no piece",
                          "it has more than " + std::to_string(most_piece_bytes) + " bytes",
                          "write one piece in each line");
        std::string piece = encode_utf8(without_blanks_around(decode_valid_characters(line)));
        if (piece.empty())
            throw BadData(
                place + " holds no piece", "the line is blank", "write one piece in each line");
        pieces.push_back(std::move(piece));
    }
    if (pieces.empty())
        throw BadData(origin + " holds no pieces",
                      "it is empty",
                      "give a vocabulary of WordPiece, such as BERT's vocab.txt");
    return pieces;
}

std::unordered_map<std::string_view, std::int32_t> ids_of(const std::vector<std::string>& pieces,
                                                          const std::string& origin) {
    std::unordered_map<std::string_view, std::int32_t> ids;
    ids.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto [found, is_new] = ids.emplace(pieces[i], static_cast<std::int32_t>(i));
        if (!is_new)
            throw BadData(vocabulary_line(origin, i + 1) + " repeats a piece",
                          "'" + pieces[i].substr(0, most_shown) + "' is in line " +
                              std::to_string(found->second + 1) + " already",
                          "remove one of the two lines; the ids behind it change");
    }
    return ids;
}

bool continues_a_word(std::string_view piece) {
    return piece.size() > continuation.size() && piece.starts_with(continuation);
}

PieceTrie trie_of(const std::vector<std::string>& pieces) {
    std::vector<PieceTrie::Piece> first, continuing;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::string_view piece = pieces[i];
        const auto id = static_cast<std::int32_t>(i);
        if (continues_a_word(piece))
            continuing.emplace_back(piece.substr(continuation.size()), id);
        else
            first.emplace_back(piece, id);
    }
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
          ids{ids_of(pieces, origin)},
          trie{trie_of(pieces)} {}

    std::string origin;
    std::vector<std::string> pieces;  // by id
    std::unordered_map<std::string_view, std::int32_t> ids;
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
    std::ifstream stream{file, std::ios::binary};
    if (!stream)
        throw MissingInput(
            "cannot open " + file.string(), std::strerror(errno), "give a file that can be read");
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
    const auto found = state_->ids.find(piece);
    return found == state_->ids.end() ? std::nullopt : std::optional{found->second};
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
