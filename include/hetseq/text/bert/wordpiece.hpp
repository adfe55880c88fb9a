#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// A vocabulary of WordPiece and its rule: from left to right, the longest piece that fits. A piece
/// that continues a word has "##" before it in the vocabulary. Cheap to copy (shared, immutable);
/// several threads may use one.
class WordPiece {
public:
    static constexpr std::string_view unknown = "[UNK]";

    /// A piece a line; its id is the number of the line, from 0. Blanks at a line's ends are left
    /// out, as google-research does; a line of Unicode's blanks alone is a piece that no text has.
    /// At most 48 MiB and 4,000,000 pieces. Throws BadData that names `origin`.
    static WordPiece parse(std::string_view bytes, const std::string& origin);
    /// Reads a vocab.txt, or a tokenizer.json as transformers writes it. Throws MissingInput,
    /// IoError or BadData.
    static WordPiece read(const std::filesystem::path& file);

    std::int64_t size() const;
    std::int32_t unknown_id() const;
    const std::string& piece(std::int32_t id) const;
    /// All pieces, each in a line: a vocab.txt. Equal vocabularies give the same bytes.
    std::string lines() const;
    /// True for a piece that continues a word.
    bool continues_word(std::int32_t id) const;
    std::optional<std::int32_t> find(std::string_view piece) const;
    /// Throws BadData where the vocabulary lacks a piece that must be there, such as "[CLS]".
    std::int32_t id_of(std::string_view piece) const;

    /// Appends the pieces of one word in UTF-8. `unknown_id` stands for a word that its pieces do
    /// not cover, and for one of more than `most_characters`.
    void append_pieces(std::string_view word,
                       std::size_t most_characters,
                       std::vector<std::int32_t>& ids) const;

private:
    struct State;
    explicit WordPiece(std::shared_ptr<const State> state) : state_{std::move(state)} {}
    std::shared_ptr<const State> state_;
};

}  // namespace hetseq
