#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hetseq/text/bert/basic_tokenizer.hpp"
#include "hetseq/text/bert/wordpiece.hpp"

namespace hetseq {

struct BertTokenizerOptions {
    /// What "[MASK]", "[CLS]" and the like are in a text: google-research takes them as text,
    /// Hugging Face as the pieces that they name.
    enum class SpecialPieces { text, kept };
    /// How words are found in ASCII text. The results are equal.
    enum class Scan { plain, fastest };

    BasicTokenizerOptions basic;
    std::size_t most_characters = 200;  // a longer word is unknown; Hugging Face takes 100
    SpecialPieces special = SpecialPieces::text;
    Scan scan = Scan::fastest;
};

/// A piece and the characters of the text that it was made from. Those are counted without what is
/// not UTF-8.
struct PlacedPiece {
    std::int32_t id = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// BERT's tokenizer: text in UTF-8 to the ids that google-research's FullTokenizer gives. Bytes
/// that are not UTF-8 are left out. It remembers words that it met, so each thread needs one of its
/// own; copies share the vocabulary.
class BertTokenizer {
public:
    explicit BertTokenizer(WordPiece pieces, const BertTokenizerOptions& options = {});
    ~BertTokenizer();
    BertTokenizer(const BertTokenizer& other);
    BertTokenizer& operator=(const BertTokenizer&) = delete;
    BertTokenizer(BertTokenizer&&) noexcept;

    const WordPiece& pieces() const;

    /// The ids of the text's pieces, until the next call.
    std::span<const std::int32_t> encode(std::string_view text);

    /// The same ids and where they come from. Step by step, and several times slower.
    std::vector<PlacedPiece> encode_with_places(std::string_view text);

private:
    class Encoder;
    std::unique_ptr<Encoder> encoder_;
};

}  // namespace hetseq
