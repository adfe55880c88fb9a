// All rows and published vectors of HETSEQ_TEST_DATA/tokenizer, which were made by other programs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "text/reference_words.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using nlohmann::json;
using testing::ElementsAre;

// Empty where the data are not.
std::filesystem::path data_folder() {
    const char* folder = std::getenv("HETSEQ_TEST_DATA");
    const std::filesystem::path path = folder != nullptr ? folder : "../shared/data";
    return std::filesystem::exists(path / "tokenizer" / "wordpiece_uncased.jsonl") ? path : "";
}

class PublishedBertTest : public testing::Test {
protected:
    void SetUp() override {
        if (data_folder().empty())
            GTEST_SKIP() << "no tokenizer/wordpiece_uncased.jsonl in HETSEQ_TEST_DATA";
    }
};

WordPiece bert_vocabulary() {
    return WordPiece::read(data_folder() / "bert" / "vocab.txt");
}

json published() {
    return json::parse(std::ifstream(data_folder() / "tokenizer" / "hf_and_google_published.json"));
}

WordPiece vocabulary_of(const json& pieces) {
    std::string lines;
    for (const std::string piece : pieces)
        lines += piece + "\n";
    return WordPiece::parse(lines, "the published vocabulary");
}

std::vector<std::string> pieces_in(BertTokenizer& tokenizer, const std::string& text) {
    std::vector<std::string> pieces;
    for (const std::int32_t id : test::ids_in(tokenizer, text))
        pieces.push_back(tokenizer.pieces().piece(id));
    return pieces;
}

TEST_F(PublishedBertTest, AllRowsAreEqual) {
    BertTokenizer tokenizer{bert_vocabulary()};
    BasicTokenizer basic{BasicTokenizerOptions{}};
    std::ifstream rows{data_folder() / "tokenizer" / "wordpiece_uncased.jsonl"};
    int count = 0;
    for (std::string line; std::getline(rows, line); ++count) {
        const json row = json::parse(line);
        EXPECT_EQ(test::ids_in(tokenizer, row["text"]), row["uncased_ids"]) << line;
        EXPECT_EQ(test::placed_ids_in(tokenizer, row["text"]), row["uncased_ids"]) << line;
        EXPECT_EQ(test::words_in(basic, row["text"]), row["uncased_basic"]) << line;
    }
    EXPECT_GE(count, 1159);
}

TEST_F(PublishedBertTest, WordsAreEqual) {
    const std::vector<std::pair<std::string, BasicTokenizerOptions>> cases{
        {"basic_lower", {true, true}},
        {"basic_lower_keep_accents", {true, false}},
        {"basic_cased", {false, false}},
        {"basic_cased_strip_accents", {false, true}},
        {"basic_control_removed", {true, true}}};
    const json vectors = published();
    for (const auto& [name, options] : cases) {
        BasicTokenizer basic{options};
        for (const json& vector : vectors[name])
            EXPECT_EQ(test::words_in(basic, vector[0]), vector[1]) << name << vector;
    }
}

// Their functions for one character, seen in what becomes of one between letters.
TEST_F(PublishedBertTest, KindsOfCharactersAreEqual) {
    const json vectors = published();
    BasicTokenizer basic{BasicTokenizerOptions::cased()};
    const auto words_around = [&](const std::string& character) {
        return test::words_in(basic, "a" + character + "b");
    };
    for (const std::string blank : vectors["is_whitespace_true"])
        EXPECT_THAT(words_around(blank), ElementsAre("a", "b"));
    for (const std::string letter :
         {vectors["is_whitespace_false"][0], vectors["is_control_false"][0]})
        EXPECT_THAT(words_around(letter), ElementsAre("a" + letter + "b"));
    for (const std::string control : vectors["is_control_true"])
        EXPECT_THAT(words_around(control), ElementsAre("ab"));
    for (const std::string mark : vectors["is_punct_true"])
        EXPECT_THAT(words_around(mark), ElementsAre("a", mark, "b"));
}

TEST_F(PublishedBertTest, PiecesAreEqual) {
    const json vectors = published();
    BertTokenizer small{vocabulary_of(vectors["wordpiece_vocab"]),
                        {.basic = BasicTokenizerOptions::cased()}};
    for (const json& vector : vectors["wordpiece"])
        EXPECT_EQ(pieces_in(small, vector[0]), vector[1]) << vector;
    BertTokenizer full{vocabulary_of(vectors["full_vocab"])};
    for (const json& vector : vectors["full"]) {
        EXPECT_EQ(pieces_in(full, vector[0]), vector[1]) << vector;
        EXPECT_EQ(test::ids_in(full, vector[0]), vector[2]) << vector;
    }
}

// Their vectors begin with [CLS], and [SEP] ends each text.
TEST_F(PublishedBertTest, PairsAreEqual) {
    BertTokenizer tokenizer{bert_vocabulary()};
    const std::int32_t end = tokenizer.pieces().id_of("[SEP]");
    const json vectors = published();
    for (const json& vector : vectors["uncased_pair_ids"]) {
        std::vector<std::int32_t> ids{tokenizer.pieces().id_of("[CLS]")}, types{0};
        for (const int type : {0, 1}) {
            for (const std::int32_t id :
                 test::ids_in(tokenizer, vector[static_cast<std::size_t>(type)]))
                ids.push_back(id);
            ids.push_back(end);
            types.resize(ids.size(), type);
        }
        EXPECT_EQ(ids, vector[2]);
        EXPECT_EQ(types, vector[3]);
    }
}

TEST_F(PublishedBertTest, PlacesAreEqual) {
    BertTokenizer tokenizer{bert_vocabulary(),
                            {.special = BertTokenizerOptions::SpecialPieces::kept}};
    const json vectors = published();
    for (const json& vector : vectors["uncased_offsets_chars"]) {
        json pieces = {"[CLS]"}, places = {{0, 0}};
        const std::string text = vector[0];
        for (const PlacedPiece& piece : tokenizer.encode_with_places(text)) {
            pieces.push_back(tokenizer.pieces().piece(piece.id));
            places.push_back({piece.begin, piece.end});
        }
        pieces.push_back("[SEP]");
        places.push_back({0, 0});
        EXPECT_EQ(pieces, vector[1]);
        EXPECT_EQ(places, vector[2]);
    }
}

}  // namespace
}  // namespace hetseq
