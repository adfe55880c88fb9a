// The tokenizer against what Google's and Hugging Face's programs gave
// (tests/reference/wordpiece.py) and its fast way against the one that goes step by step.
#include "hetseq/text/bert/bert_tokenizer.hpp"

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/text/bert/basic_tokenizer.hpp"
#include "hetseq/text/bert/valid_characters.hpp"

#include "text/reference_words.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using Scan = BertTokenizerOptions::Scan;

const json& reference() {
    static const json root = json::parse(std::ifstream("tests/reference/wordpiece.json"));
    return root;
}

WordPiece reference_pieces() {
    std::string lines;
    for (const std::string piece : reference()["vocabulary"])
        lines += piece + "\n";
    return WordPiece::parse(lines, "wordpiece.json");
}

BasicTokenizerOptions basic_options(const std::string& name) {
    return name == "cased" ? BasicTokenizerOptions::cased() : BasicTokenizerOptions{};
}

class ReferenceTest : public testing::TestWithParam<std::string> {};

TEST_P(ReferenceTest, WordsAreGoogles) {
    BasicTokenizer tokenizer{basic_options(GetParam())};
    ASSERT_GT(reference()[GetParam()].size(), 100U);
    for (const json& row : reference()[GetParam()])
        EXPECT_EQ(test::words_in(tokenizer, row["text"]), row["words"]) << row["text"];
}

TEST_P(ReferenceTest, IdsAreTheirs) {
    for (const Scan scan : {Scan::plain, Scan::fastest}) {
        BertTokenizer tokenizer{reference_pieces(),
                                {.basic = basic_options(GetParam()), .scan = scan}};
        for (int round = 0; round < 2; ++round)  // the second finds the words in the cache
            for (const json& row : reference()[GetParam()])
                EXPECT_EQ(test::ids_in(tokenizer, row["text"]), row["ids"]) << row["text"];
    }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         ReferenceTest,
                         testing::Values("uncased", "cased"),
                         [](const auto& name) { return name.param; });

// Texts of pieces that change what stands beside them, put together at random.
std::string random_text(std::mt19937& source) {
    static const std::vector<std::string> parts{"the",
                                                "LOWEST",
                                                "abcdabcd",
                                                "Abc",
                                                " ",
                                                " ",
                                                ",",
                                                "'",
                                                "\t",
                                                "é",
                                                "ÀÉ",
                                                "\xcc\x81",
                                                "日本",
                                                "Σ",
                                                "ας",
                                                "İ",
                                                "\xe2\x80\x8b",
                                                "\x01",
                                                "—",
                                                "\xc3",
                                                "\xff",
                                                "\x80",
                                                "\xed\xa0\x80",
                                                std::string(1, '\0'),
                                                "мир",
                                                "한국",
                                                "0123456789012345",
                                                "\xe2\x80\xa8",
                                                "\xf0\x9f\x98\x80",
                                                "\xe1\x84\x80\xcc\xa3\xcc\x87"};
    std::string text;
    for (unsigned count = source() % 30; count > 0; --count)
        text += parts[source() % parts.size()];
    return text;
}

TEST(BertTokenizerTest, TheFastWayGivesWhatStepByStepGives) {
    for (const bool lower_case : {true, false})
        for (const bool strip_accents : {true, false}) {
            const BasicTokenizerOptions basic{lower_case, strip_accents};
            BertTokenizer fast{reference_pieces(), {.basic = basic}};
            BertTokenizer plain{reference_pieces(), {.basic = basic, .scan = Scan::plain}};
            std::mt19937 source{3};
            for (int i = 0; i < 20000; ++i) {
                const std::string text = random_text(source);
                const std::vector<std::int32_t> ids = test::ids_in(fast, text);
                ASSERT_EQ(ids, test::ids_in(plain, text))
                    << json(text).dump(-1, ' ', true, json::error_handler_t::replace);
                ASSERT_EQ(ids, test::placed_ids_in(fast, text))
                    << json(text).dump(-1, ' ', true, json::error_handler_t::replace);
            }
        }
}

// A limit so low that many texts reach it, and words of the lengths around those of a key.
TEST(BertTokenizerTest, TheFastWayKnowsHowLongAWordMayBe) {
    BertTokenizer fast{reference_pieces(), {.most_characters = 33}};
    for (std::size_t length = 0; length <= 70; ++length)
        for (const std::string& text : {std::string(length, 'a'),
                                        std::string(length, 'a') + "\xcc\x81",
                                        "x " + std::string(length, 'B') + "!",
                                        "é" + std::string(length, 'C')})
            EXPECT_EQ(test::ids_in(fast, text), test::placed_ids_in(fast, text)) << text;
}

TEST(BertTokenizerTest, BytesThatAreNotUtf8AreLeftOut) {
    BertTokenizer tokenizer{WordPiece::parse("[UNK]\nab\nc\n##é\n##e\n", "v"),
                            {.basic = BasicTokenizerOptions::cased()}};

    EXPECT_THAT(test::ids_in(tokenizer,
                             "a\xff"
                             "b"),
                ElementsAre(1));
    EXPECT_THAT(test::ids_in(tokenizer, "ab\xe2\x82 c\xc3\xa9"), ElementsAre(1, 2, 3));
    EXPECT_THAT(test::ids_in(tokenizer, "ab\xed\xa0\x80 \xf5\x80\x80\x80"), ElementsAre(1));
    EXPECT_THAT(test::ids_in(tokenizer, "\xc3"), ElementsAre());
}

TEST(BertTokenizerTest, SpecialPiecesAreTextUnlessTheyAreKept) {
    const WordPiece pieces = WordPiece::parse("[UNK]\n[MASK]\n[\n]\nmask\na\n", "v");
    BertTokenizer as_text{pieces};
    BertTokenizer kept{pieces, {.special = BertTokenizerOptions::SpecialPieces::kept}};

    EXPECT_THAT(test::ids_in(as_text, "a [MASK]"), ElementsAre(5, 2, 4, 3));
    EXPECT_THAT(test::ids_in(kept, "a [MASK]a[MA\xffSK][CLS]"), ElementsAre(5, 1, 5, 1, 2, 0, 3));
    EXPECT_EQ(test::placed_ids_in(kept, "a [MASK]a[MA\xffSK]"),
              test::ids_in(kept, "a[MASK]a[MASK]"));
}

TEST(BertTokenizerTest, PlacesAreThoseOfTheTextsCharacters) {
    BertTokenizer tokenizer{WordPiece::parse("[UNK]\nna\n##i\n##ve\n,\n[MASK]\n", "v"),
                            {.special = BertTokenizerOptions::SpecialPieces::kept}};

    const auto placed = tokenizer.encode_with_places("é, nai\xcc\x88ve [MASK] x");

    std::vector<std::vector<std::size_t>> found;
    for (const PlacedPiece& piece : placed)
        found.push_back({static_cast<std::size_t>(piece.id), piece.begin, piece.end});
    using Row = std::vector<std::size_t>;
    EXPECT_THAT(found,
                ElementsAre(Row{0, 0, 1},
                            Row{4, 1, 2},
                            Row{1, 3, 5},
                            Row{2, 5, 6},
                            Row{3, 7, 9},
                            Row{5, 10, 16},
                            Row{0, 17, 18}));
}

// Tone marks that are no accents (U+302E of class 224, U+1D165 of class 216) change places.
TEST(BertTokenizerTest, APlaceHoldsMarksThatChangePlaces) {
    BertTokenizer tokenizer{WordPiece::parse("[UNK]\n", "v")};

    const auto placed = tokenizer.encode_with_places("\xe3\x80\xae\xf0\x9d\x85\xa5");

    ASSERT_EQ(placed.size(), 1U);
    EXPECT_EQ(placed[0].begin, 0U);
    EXPECT_EQ(placed[0].end, 2U);
}

TEST(BertTokenizerTest, CopiesGiveTheSame) {
    BertTokenizer first{reference_pieces()};
    test::ids_in(first, "the lowest");
    BertTokenizer second{first};

    EXPECT_EQ(test::ids_in(second, "the lowest"), test::ids_in(first, "the lowest"));
    EXPECT_EQ(second.pieces().size(), first.pieces().size());
}

}  // namespace
}  // namespace hetseq
