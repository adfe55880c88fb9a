#include "sentence_piece_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/text/utf8.hpp"

#include "text/character_map.hpp"
#include "wire_format.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_model_bytes = std::size_t{24} << 20;
constexpr std::int64_t most_model_pieces = 1'000'000;  // 3.5 s for a unigram model
constexpr std::size_t most_model_piece_bytes = 8000;  // the library's own limit since version 0.2.1
constexpr float largest_score = 1e9F;
constexpr std::size_t most_nested = 64;  // pieces of a user, for which the library has room

// Numbers of fields and values of sentencepiece_model.proto.
enum class ModelField : std::uint32_t { pieces = 1, normalizer = 3, denormalizer = 5 };
enum class PieceField : std::uint32_t { text = 1, score = 2, type = 3 };
constexpr std::uint32_t field_of_character_map = 2;
enum class PieceType : std::uint64_t { normal = 1, unknown = 2, user_defined = 4, last = 6 };

[[noreturn]] void refuse_model(const std::string& origin,
                               const std::string& why,
                               const std::string& what_to_do = "copy or prepare it again") {
    throw BadData(origin + " cannot be read as a SentencePiece model", why, what_to_do);
}

struct ModelPiece {
    std::string_view text;
    float score = 0;
    PieceType type = PieceType::normal;
};

class ModelCheck {
public:
    explicit ModelCheck(const std::string& origin) : origin_{origin} {}

    void check(std::string_view model) {
        WireReader fields{model};
        while (const auto field = fields.next()) {
            if (field->type != WireType::bytes)
                continue;
            if (field->number == static_cast<std::uint32_t>(ModelField::pieces))
                add_piece(field->bytes);
            if (field->number == static_cast<std::uint32_t>(ModelField::normalizer) ||
                field->number == static_cast<std::uint32_t>(ModelField::denormalizer))
                check_normalizer(field->bytes);
        }
        if (fields.is_damaged())
            refuse_model(origin_, "it is cut off or damaged");
        if (unknown_ != 1)
            refuse_model(origin_,
                         std::to_string(unknown_) + " of its pieces stand for the unknown");
        check_user_pieces();
    }

private:
    void add_piece(std::string_view message) {
        if (++pieces_ > most_model_pieces)
            refuse_model(origin_,
                         "it has more than " + std::to_string(most_model_pieces) + " pieces",
                         "train one with fewer");
        const ModelPiece piece = read_piece(message);
        check_piece(piece);
        if (piece.type == PieceType::unknown)
            ++unknown_;
        if (piece.type == PieceType::user_defined)
            user_pieces_.push_back(piece.text);
    }

    ModelPiece read_piece(std::string_view message) const {
        ModelPiece piece;
        WireReader fields{message};
        while (const auto field = fields.next())
            switch (static_cast<PieceField>(field->number)) {
                case PieceField::text:
                    if (field->type == WireType::bytes)
                        piece.text = field->bytes;
                    break;
                case PieceField::score:
                    if (field->type == WireType::fixed32)
                        piece.score =
                            std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
                    break;
                case PieceField::type:
                    if (field->type == WireType::varint)
                        piece.type = static_cast<PieceType>(field->value);
                    break;
            }
        if (fields.is_damaged())
            fail("is damaged");
        return piece;
    }

    void check_piece(const ModelPiece& piece) const {
        if (piece.text.empty())
            fail("is empty");
        if (piece.text.size() >= most_model_piece_bytes)
            fail("has " + std::to_string(piece.text.size()) + " bytes, and fewer than " +
                 std::to_string(most_model_piece_bytes) + " are allowed");
        if (valid_utf8_bytes(piece.text) != piece.text.size() ||
            piece.text.find('\0') != std::string_view::npos)
            fail("is no text in UTF-8");
        if (!(std::abs(piece.score) <= largest_score))
            fail("has a score that is not finite, or above 1e9");
        if (piece.type < PieceType::normal || piece.type > PieceType::last)
            fail("is of an unknown type");
    }

    void check_normalizer(std::string_view message) const {
        WireReader fields{message};
        while (const auto field = fields.next()) {
            if (field->number != field_of_character_map || field->type != WireType::bytes ||
                field->bytes.empty())
                continue;
            if (const std::string fault = character_map_fault(field->bytes); !fault.empty())
                refuse_model(origin_, fault);
        }
        if (fields.is_damaged())
            refuse_model(origin_, "its normalizer is damaged");
    }

    // A search finds all of them that begin a text.
    void check_user_pieces() {
        std::sort(user_pieces_.begin(), user_pieces_.end());
        std::vector<std::string_view> nested;
        for (const std::string_view piece : user_pieces_) {
            while (!nested.empty() && !piece.starts_with(nested.back()))
                nested.pop_back();
            nested.push_back(piece);
            if (nested.size() > most_nested)
                refuse_model(origin_, "more than 64 pieces of its user begin alike");
        }
    }

    [[noreturn]] void fail(const std::string& fault) const {
        refuse_model(origin_, "piece " + std::to_string(pieces_ - 1) + " " + fault);
    }

    const std::string& origin_;
    std::int64_t pieces_ = 0;  // so far
    std::int64_t unknown_ = 0;
    std::vector<std::string_view> user_pieces_;
};

}  // namespace

void check_sentence_piece_model(std::string_view bytes, const std::string& origin) {
    if (bytes.size() > most_model_bytes)
        refuse_model(origin, "it has more than 24 MiB", "train one with fewer pieces");
    ModelCheck{origin}.check(bytes);
}

}  // namespace hetseq
