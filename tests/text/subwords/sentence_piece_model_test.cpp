// Broken SentencePiece models: each is refused with a reason, or holds text as a good one does. The
// library alone ends the process for many of them.
#include <bit>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/text/subwords/train_subwords.hpp"
#include "hetseq/text/vocabulary.hpp"

#include "data/error_text.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

constexpr int pieces_field = 1, trainer_field = 2, normalizer_field = 3, denormalizer_field = 5;
constexpr int normal = 1, unknown = 2, control = 3, user_defined = 4, byte_piece = 6;

std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7)
        bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}

std::string number_field(int field, std::uint64_t value) {
    return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}

std::string bytes_field(int field, const std::string& bytes) {
    return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string word(std::uint32_t value) {
    std::string bytes;
    for (int i = 0; i < 4; ++i)
        bytes += static_cast<char>(value >> (8 * i));
    return bytes;
}

std::string piece(const std::string& text, std::uint64_t type = normal, float score = -1) {
    return bytes_field(pieces_field,
                       bytes_field(1, text) + varint(2 << 3 | 5) +
                           word(std::bit_cast<std::uint32_t>(score)) + number_field(3, type));
}

const std::string special =
    piece("<unk>", unknown, 0) + piece("<s>", control, 0) + piece("</s>", control, 0);

std::string map_of(const std::vector<std::uint32_t>& units, const std::string& texts) {
    std::string trie;
    for (const std::uint32_t unit : units)
        trie += word(unit);
    return word(static_cast<std::uint32_t>(trie.size())) + trie + texts;
}

std::string with_map(const std::string& map, int field = normalizer_field) {
    return special + piece("a") + bytes_field(field, bytes_field(2, map));
}

// Units of the double array of darts-clone.
std::uint32_t unit(char label, std::uint32_t offset, bool has_value = false) {
    return static_cast<unsigned char>(label) | (has_value ? 0x100U : 0U) | offset << 10;
}

// "a" becomes "x": the root's children begin at 256, those of "a" at 512.
std::vector<std::uint32_t> small_trie(std::uint32_t value = 0) {
    std::vector<std::uint32_t> units(768);
    for (std::size_t i = 0; i < units.size(); ++i)
        units[i] = 0xff;  // no child of a root or of "a" but by the byte 0xff
    units[511] = units[767] = 0;
    units[0] = unit('\0', 256);
    units[256 + 'a'] = unit('a', (256 + 'a') ^ 512, true);
    units[512] = 0x80000000 | value;
    return units;
}

std::string trained_model(const std::string& type, const std::string& rule = "nmt_nfkc") {
    int line = 0;
    return train_subwords({.model_type = type, .vocab_size = 20, .normalization = rule},
                          [&](std::string& text) {
                              text = "the cat " + std::to_string(line % 7) + " sat on a mat";
                              return ++line <= 60;
                          })
        .model;
}

void use(const std::string& model) {
    const Vocabulary vocabulary = Vocabulary::parse(model, "MODEL");
    for (const std::string text :
         {"the cat sat", "aaab é \xef\xbc\xa1\xef\xac\x81 \x80", "\0a", " "}) {
        std::vector<std::int32_t> ids;
        vocabulary.encode(text, ids);
        for (const std::int32_t id : ids)
            ASSERT_TRUE(id >= 0 && id < vocabulary.size());
        vocabulary.decode(ids);
    }
}

std::string refusal_of(const std::string& model) {
    const test::Thrown thrown = thrown_by([&] { use(model); });
    EXPECT_EQ(thrown.code, ExitCode::bad_data) << thrown.text;
    EXPECT_THAT(thrown.text, HasSubstr("MODEL"));
    return thrown.text;
}

TEST(SentencePieceModelTest, SoundModelsAreTaken) {
    use(special + piece("a") + piece("\xe2\x96\x81", normal));
    use(special + piece("a") + bytes_field(99, "of a later version"));
    for (const std::string& rule : subword_normalizations())
        use(trained_model("bpe", rule));
    const Vocabulary mapped = Vocabulary::parse(
        with_map(map_of(small_trie(), std::string("x\0", 2))) + piece("x"), "MODEL");
    std::vector<std::int32_t> ids;
    mapped.encode("a", ids);
    EXPECT_EQ(mapped.decode(ids).back(), 'x');
}

TEST(SentencePieceModelTest, BadPiecesAreNamed) {
    EXPECT_THAT(refusal_of(special + piece("a") + piece(std::string(5 << 20, 'x'))),
                HasSubstr("piece 4 has 5242880 bytes, and fewer than 8000 are allowed"));
    EXPECT_THAT(refusal_of(special + piece("")), HasSubstr("piece 3 is empty"));
    EXPECT_THAT(refusal_of(special + piece("caf\xe9")), HasSubstr("piece 3 is no text in UTF-8"));
    EXPECT_THAT(refusal_of(special + piece(std::string("a\0b", 3))), HasSubstr("no text in UTF-8"));
    EXPECT_THAT(refusal_of(special + piece("a", 77)), HasSubstr("piece 3 is of an unknown type"));
    for (const float score : {std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::max()})
        EXPECT_THAT(refusal_of(special + piece("a", normal, score)), HasSubstr("not finite"));
    EXPECT_THAT(refusal_of(piece("a")), HasSubstr("0 of its pieces stand for the unknown"));
    EXPECT_THAT(refusal_of(special + piece("u", unknown)), HasSubstr("2 of its pieces"));
    EXPECT_THAT(refusal_of(special + piece("a") + piece("a")), HasSubstr("already defined"));
    EXPECT_THAT(refusal_of(special + piece("<0x41>", byte_piece)), HasSubstr("byte"));
    EXPECT_THAT(refusal_of(piece("a") + special), HasSubstr("has other ids than hetseq uses"));
    refusal_of(special);  // without a piece for text
}

TEST(SentencePieceModelTest, TooManyPiecesAreRefusedByTheLimit) {
    std::string model = special;
    const std::string smallest = bytes_field(pieces_field, bytes_field(1, "a"));
    for (int i = 0; i < 1'000'000; ++i)
        model += smallest;

    EXPECT_THAT(refusal_of(model), HasSubstr("more than 1000000 pieces"));
}

TEST(SentencePieceModelTest, PiecesOfAUserMayNotBeginAlikeWithoutEnd) {
    std::string model = special;
    for (std::size_t length = 1; length <= 65; ++length)
        model += piece(std::string(length, 'a'), user_defined);

    EXPECT_THAT(refusal_of(model), HasSubstr("more than 64 pieces of its user begin alike"));
}

TEST(SentencePieceModelTest, BadMapsOfCharactersAreRefused) {
    const std::string text("x\0", 2);
    const auto refused = [](const std::string& map) { return refusal_of(with_map(map)); };
    const auto changed = [&](std::size_t place, std::uint32_t unit) {
        std::vector<std::uint32_t> units = small_trie();
        units.at(place) = unit;
        return map_of(units, text);
    };

    EXPECT_THAT(refused("abc"), HasSubstr("cut off"));
    EXPECT_THAT(refused(word(4000) + "abcd"), HasSubstr("wrong size"));
    EXPECT_THAT(refused(word(0) + text), HasSubstr("wrong size"));
    EXPECT_THAT(refused(word(3) + "abc" + text), HasSubstr("wrong size"));
    EXPECT_THAT(refused(map_of({}, "")), HasSubstr("cut off"));
    EXPECT_THAT(refused(map_of(small_trie(), "")), HasSubstr("wrong size"));
    EXPECT_THAT(refused(map_of(small_trie(), "x")), HasSubstr("hold no text"));
    EXPECT_THAT(refused(map_of(small_trie(), std::string("\xff\0", 2))), HasSubstr("hold no text"));
    EXPECT_THAT(refused(map_of(small_trie(), std::string(2000, 'x') + text)),
                HasSubstr("hold no text"));
    EXPECT_THAT(refused(map_of(small_trie(2), text)), HasSubstr("outside of the rules' text"));
    EXPECT_THAT(refused(map_of(small_trie(1), std::string("\xc3\xa9\0", 3))),
                HasSubstr("outside of the rules' text"));
    EXPECT_THAT(refused(map_of({unit('\0', 0)}, text)), HasSubstr("outside of itself"));
    EXPECT_THAT(refused(changed(0, unit('\0', 1 << 20))), HasSubstr("outside of itself"));
    EXPECT_THAT(refused(changed(256 + 'a', unit('a', 1 << 15))), HasSubstr("outside of itself"));
    EXPECT_THAT(refused(changed(256 + 'a', unit('a', (256 + 'a') ^ 256))), HasSubstr("cycle"));
    EXPECT_THAT(refusal_of(with_map("abc", denormalizer_field)), HasSubstr("cut off"));
}

// A search has room for 32 rules: a, aa, aaa and so on.
TEST(SentencePieceModelTest, RulesMayNotBeginAlikeWithoutEnd) {
    for (const std::uint32_t rules : {32U, 33U}) {
        std::vector<std::uint32_t> units(256 * (rules + 2), 0xff);
        units[0] = unit('\0', 256);
        for (std::uint32_t i = 1; i <= rules; ++i) {
            const std::uint32_t place = 256 * i + 'a';
            units[256 * i + 0xff] = 0;
            units[place] = unit('a', place ^ (256 * (i + 1)), true);
            units[256 * (i + 1)] = 0x80000000;
        }
        units[256 * (rules + 1) + 0xff] = 0;
        const std::string model = with_map(map_of(units, std::string("x\0", 2)));
        if (rules == 32)
            use(model);
        else
            EXPECT_THAT(refusal_of(model), HasSubstr("begin alike"));
    }
}

// Truncated, with bytes changed, with a stretch of random bytes: in all parts of a model.
TEST(SentencePieceModelTest, NoDamageEndsTheProcess) {
    for (const std::string type : {"unigram", "bpe"}) {
        const std::string good = trained_model(type);
        use(good);
        std::mt19937 random{7};
        int refused = 0;
        for (int i = 0; i < 60; ++i) {
            std::string model = good;
            const std::size_t place = i % 2 == 0 ? random() % model.size() : random() % 1200;
            if (i % 3 == 0)
                model.resize(place);
            for (std::size_t at = place; i % 3 != 0 && at < model.size(); ++at) {
                model[at] = static_cast<char>(random());
                if (random() % (i % 3 == 1 ? 2 : 300) == 0)
                    break;
            }
            const test::Thrown thrown = thrown_by([&] { use(model); });
            ASSERT_TRUE(thrown.code == ExitCode::finished || thrown.code == ExitCode::bad_data)
                << thrown.text;
            refused += thrown.code == ExitCode::bad_data ? 1 : 0;
        }
        EXPECT_GT(refused, 20);
    }
}

}  // namespace
}  // namespace hetseq
