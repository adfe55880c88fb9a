#include "hetseq/text/bert/bert_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "hetseq/text/bert/valid_characters.hpp"
#include "hetseq/text/code_points.hpp"

#include "text/ascii_word.hpp"
#include "word_cache.hpp"

namespace hetseq {

namespace {

using SpecialPieces = BertTokenizerOptions::SpecialPieces;

constexpr std::array<std::string_view, 5> special_pieces{
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

// Its lower case depends on what stands beside it, up to the next blanks (see lower_case).
constexpr std::string_view capital_sigma_bytes = "\xce\xa3";

// A special piece in a text, and where it begins.
struct FoundSpecial {
    std::size_t begin = std::string_view::npos;
    std::size_t bytes = 0;
    std::int32_t id = 0;
};

FoundSpecial next_special(std::string_view text, const WordPiece& pieces) {
    for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1))
        for (const std::string_view piece : special_pieces)
            if (text.substr(at).starts_with(piece))
                if (const auto id = pieces.find(piece))
                    return {at, piece.size(), *id};
    return {.begin = text.size()};
}

std::size_t count_characters(std::string_view utf8) {
    return decode_valid_characters(utf8).size();
}

}  // namespace

class BertTokenizer::Encoder {
public:
    Encoder(WordPiece pieces, const BertTokenizerOptions& options)
        : pieces_{std::move(pieces)},
          options_{options},
          case_bit_{options.basic.lower_case ? CaseBit::lower : CaseBit::keep},
          basic_{options.basic} {
        for (std::size_t byte = 0; byte < punctuation_.size(); ++byte) {
            const char character = static_cast<char>(byte);
            punctuation_[byte] = pieces_.find({&character, 1}).value_or(pieces_.unknown_id());
        }
    }

    const WordPiece& pieces() const { return pieces_; }
    const BertTokenizerOptions& options() const { return options_; }

    std::span<const std::int32_t> encode(std::string_view text) {
        used_ = 0;
        if (options_.special == SpecialPieces::text) {
            encode_text(text);
        } else {
            const std::string valid = encode_utf8(decode_valid_characters(text));
            std::string_view rest = valid;
            while (!rest.empty()) {
                const FoundSpecial special = next_special(rest, pieces_);
                encode_text(rest.substr(0, special.begin));
                rest.remove_prefix(special.begin + special.bytes);
                if (special.bytes > 0)
                    append({&special.id, 1}, rest.size());
            }
        }
        return {ids_.data(), used_};
    }

    std::vector<PlacedPiece> encode_with_places(std::string_view text) {
        const std::string valid = encode_utf8(decode_valid_characters(text));
        std::string_view rest = valid;
        std::vector<PlacedPiece> placed;
        std::size_t offset = 0;  // characters before `rest`
        while (!rest.empty()) {
            const FoundSpecial special = options_.special == SpecialPieces::kept
                                             ? next_special(rest, pieces_)
                                             : FoundSpecial{.begin = rest.size()};
            place_text(rest.substr(0, special.begin), offset, placed);
            offset += count_characters(rest.substr(0, special.begin));
            if (special.bytes > 0)
                placed.push_back({special.id, offset, offset + special.bytes});
            offset += special.bytes;
            rest.remove_prefix(special.begin + special.bytes);
        }
        return placed;
    }

private:
    // Room behind the ids: a word's pieces are copied as many as an entry of the cache has.
    static constexpr std::size_t slack = WordCache::most_ids;

    void encode_text(std::string_view text) {
        make_room(text.size());
        if (options_.basic.lower_case && text.find(capital_sigma_bytes) != std::string_view::npos) {
            word_ids_.clear();
            append_words(text);
            append(word_ids_, 0);
            return;
        }
        // A blank behind the text ends its last word, and more can be read at once.
        padded_.assign(text);
        padded_.append(2 * WordKey::bytes, ' ');
        const char* begin = padded_.data();
        if (options_.scan == BertTokenizerOptions::Scan::plain)
            scan<PlainWordScan>(begin, begin + text.size());
        else
            scan<VectorWordScan>(begin, begin + text.size());
    }

    template <class WordScan>
    void scan(const char* at, const char* end) {
        WordKey key;
        while (at < end) {
            const std::size_t length = WordScan::run(at, case_bit_, key);
            const ByteKind next = kind_at(at + length);
            if (length == 0 && next == ByteKind::punctuation) {
                ids_[used_++] = punctuation_[static_cast<unsigned char>(*at++)];
            } else if (length == 0 && next == ByteKind::blank) {
                ++at;
            } else if (next == ByteKind::blank || next == ByteKind::punctuation) [[likely]] {
                if (const WordCache::Entry* entry = cache_.find(key)) [[likely]]
                    append(*entry);
                else
                    append_ascii_word({at, length}, key, end);
                at += length + (next == ByteKind::blank ? 1 : 0);
            } else {
                at = append_other(at, end);
            }
        }
    }

    void append(const WordCache::Entry& entry) {
        std::copy(
            entry.ids.begin(), entry.ids.end(), ids_.begin() + static_cast<std::ptrdiff_t>(used_));
        used_ += static_cast<std::size_t>(entry.count);
    }

    // Keeps room for as many more ids as there are bytes to come.
    void append(std::span<const std::int32_t> ids, std::size_t bytes_to_come) {
        make_room(ids.size() + bytes_to_come);
        std::copy(ids.begin(), ids.end(), ids_.begin() + static_cast<std::ptrdiff_t>(used_));
        used_ += ids.size();
    }

    void make_room(std::size_t count) {
        if (ids_.size() < used_ + count + slack)
            ids_.resize(2 * (used_ + count) + slack);
    }

    void append_ascii_word(std::string_view word, const WordKey& key, const char* end) {
        word_ids_.clear();
        word_.assign(word);
        for (char& byte : word_)
            byte = static_cast<char>(static_cast<unsigned char>(byte) |
                                     static_cast<unsigned char>(case_bit_));
        pieces_.append_pieces(word_, options_.most_characters, word_ids_);
        cache_.put(key, word_ids_);
        append(word_ids_, static_cast<std::size_t>(end - word.data()));
    }

    // What stands between blanks or ASCII punctuation and is long or not only ASCII. Returns where
    // it ends.
    const char* append_other(const char* begin, const char* end) {
        const char* stop = begin;
        while (stop < end && kind_at(stop) != ByteKind::blank &&
               kind_at(stop) != ByteKind::punctuation)
            ++stop;
        const std::string_view text{begin, static_cast<std::size_t>(stop - begin)};
        const std::optional<WordKey> key = key_of(text);
        const WordCache::Entry* entry = key ? cache_.find(*key) : nullptr;
        if (entry != nullptr) {
            append(*entry);
            return stop;
        }
        word_ids_.clear();
        append_words(text);
        if (key)
            cache_.put(*key, word_ids_);
        append(word_ids_, static_cast<std::size_t>(end - stop));
        return stop;
    }

    // None for a text that a key cannot tell from others. Letters keep their case: the key of a
    // text with other bytes is no ASCII word's.
    static std::optional<WordKey> key_of(std::string_view text) {
        if (text.size() > WordKey::bytes || text.find('\0') != std::string_view::npos ||
            std::all_of(text.begin(), text.end(), [](const char& byte) {
                return kind_at(&byte) == ByteKind::letter_or_digit;
            }))
            return std::nullopt;
        WordKey key;
        std::memcpy(key.parts.data(), text.data(), text.size());
        return key;
    }

    void append_words(std::string_view text) {
        const BasicWords& words = basic_.words(decode_valid_characters(text));
        for (std::size_t i = 0; i < words.size(); ++i)
            pieces_.append_pieces(encode_utf8(words.word(i)), options_.most_characters, word_ids_);
    }

    // Of a text whose first character is the one of the number `offset`.
    void place_text(std::string_view text, std::size_t offset, std::vector<PlacedPiece>& placed) {
        const BasicWords& words = basic_.words(decode_valid_characters(text));
        for (std::size_t i = 0; i < words.size(); ++i) {
            word_ids_.clear();
            pieces_.append_pieces(encode_utf8(words.word(i)), options_.most_characters, word_ids_);
            std::size_t at = words.begin(i);
            for (std::size_t piece = 0; piece < word_ids_.size(); ++piece) {
                const bool is_last = piece + 1 == word_ids_.size();
                const std::size_t next =
                    is_last ? words.ends[i] : at + length_of(word_ids_[piece], piece > 0);
                const auto [first, last] = source_range(words, at, next);
                placed.push_back({word_ids_[piece], offset + first, offset + last + 1});
                at = next;
            }
        }
    }

    // The first and the last source. Marks may stand in another order than in the text.
    static std::pair<std::size_t, std::size_t> source_range(const BasicWords& words,
                                                            std::size_t begin,
                                                            std::size_t end) {
        const auto sources = std::span{words.sources}.subspan(begin, end - begin);
        const auto [first, last] = std::minmax_element(sources.begin(), sources.end());
        return {*first, *last};
    }

    std::size_t length_of(std::int32_t id, bool continues) const {
        return count_characters(pieces_.piece(id)) - (continues ? 2 : 0);
    }

    WordPiece pieces_;
    BertTokenizerOptions options_;
    CaseBit case_bit_;
    std::array<std::int32_t, 128> punctuation_{};
    BasicTokenizer basic_;
    WordCache cache_;
    std::vector<std::int32_t> ids_;  // of the text; `used_` of them count
    std::size_t used_ = 0;
    std::vector<std::int32_t> word_ids_;
    std::string padded_, word_;
};

BertTokenizer::BertTokenizer(WordPiece pieces, const BertTokenizerOptions& options)
    : encoder_{std::make_unique<Encoder>(std::move(pieces), options)} {}

BertTokenizer::~BertTokenizer() = default;

BertTokenizer::BertTokenizer(const BertTokenizer& other)
    : BertTokenizer(other.encoder_->pieces(), other.encoder_->options()) {}

BertTokenizer::BertTokenizer(BertTokenizer&&) noexcept = default;

const WordPiece& BertTokenizer::pieces() const {
    return encoder_->pieces();
}

std::span<const std::int32_t> BertTokenizer::encode(std::string_view text) {
    return encoder_->encode(text);
}

std::vector<PlacedPiece> BertTokenizer::encode_with_places(std::string_view text) {
    return encoder_->encode_with_places(text);
}

}  // namespace hetseq
