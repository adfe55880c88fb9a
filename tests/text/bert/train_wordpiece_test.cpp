// A trained vocabulary against the one of Hugging Face's trainer (tests/reference/wordpiece.py).
#include "hetseq/text/bert/train_wordpiece.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/text/bert/wordpiece.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Words = BertWordCounts::Words;

TEST(BertWordCountsTest, CountsTheWordsOfTheTokenizer) {
    BertWordCounts counts{BasicTokenizerOptions{}};

    counts.add_line("The dog,the Dog\t naïve");
    counts.add_line("dog\x01 the\r");
    counts.add_line("");

    EXPECT_THAT(counts.words(),
                ElementsAre(Pair(",", 1), Pair("dog", 3), Pair("naive", 1), Pair("the", 3)));
}

TEST(TrainWordPieceTest, JoinsTheMostFrequentPair) {
    const Words words{{"ab", 5}, {"abc", 3}, {"cb", 4}};

    const std::vector<std::string> pieces = train_wordpiece(words, {.pieces = 13});

    EXPECT_THAT(pieces,
                ElementsAre("[PAD]",
                            "[UNK]",
                            "[CLS]",
                            "[SEP]",
                            "[MASK]",
                            "a",
                            "b",
                            "c",
                            "##b",
                            "##c",
                            "ab",
                            "cb",
                            "abc"));
}

TEST(TrainWordPieceTest, StopsAtRarePairs) {
    EXPECT_EQ(train_wordpiece({{"ab", 1}, {"ac", 2}}, {}).back(), "ac");
    EXPECT_EQ(train_wordpiece({{"ab", 1}}, {}).back(), "##b");
    EXPECT_EQ(train_wordpiece({{"ab", 1}}, {.least_count = 1}).back(), "ab");
}

TEST(TrainWordPieceTest, LeavesRareCharactersOut) {
    const std::vector<std::string> pieces =
        train_wordpiece({{"ab", 5}, {"axb", 1}}, {.most_characters = 2});

    EXPECT_THAT(std::vector<std::string>(pieces.begin() + 5, pieces.end()),
                ElementsAre("a", "b", "##b", "ab"));
}

TEST(TrainWordPieceTest, SaysWhatItCannotTrain) {
    const auto message = [](const Words& words, std::int64_t pieces) -> std::string {
        try {
            train_wordpiece(words, {.pieces = pieces});
        } catch (const BadData& error) {
            return error.what();
        }
        return "no error";
    };

    EXPECT_THAT(message({}, 10), HasSubstr("the text has no words"));
    EXPECT_THAT(message({{"ab", 5}}, 7), HasSubstr("the text's characters alone need 8"));
}

TEST(TrainWordPieceTest, NeedsAsManyPiecesAsTheirs) {
    const json reference = json::parse(std::ifstream("tests/reference/wordpiece.json"))["trained"];
    Words words;
    for (const auto& [word, count] : reference["words"].items())
        words.emplace_back(word, count);
    BertWordCounts counts{BasicTokenizerOptions{}};
    for (const auto& [word, count] : words)
        for (std::int64_t i = 0; i < count; ++i)
            counts.add_line(word);

    std::vector<std::string> pieces =
        train_wordpiece(counts.words(), {.pieces = reference["size"]});

    std::string lines;
    for (const std::string& piece : pieces)
        lines += piece + "\n";
    const WordPiece vocabulary = WordPiece::parse(lines, "trained");
    std::int64_t needed = 0;
    for (const auto& [word, count] : counts.words()) {
        std::vector<std::int32_t> ids;
        vocabulary.append_pieces(word, 200, ids);
        needed += std::ssize(ids) * count;
    }
    EXPECT_NEAR(static_cast<double>(needed),
                reference["needed"].get<double>(),
                0.01 * reference["needed"].get<double>());
    const std::vector<std::string> theirs = reference["vocabulary"];
    std::sort(pieces.begin(), pieces.end());
    std::vector<std::string> alike;
    std::set_intersection(
        pieces.begin(), pieces.end(), theirs.begin(), theirs.end(), std::back_inserter(alike));
    EXPECT_EQ(pieces.size(), theirs.size());
    EXPECT_GE(alike.size() + 3, theirs.size());  // equally frequent pairs may come in another order
}

TEST(TrainWordPieceTest, TheSameWordsGiveTheSameVocabulary) {
    BertWordCounts first{BasicTokenizerOptions{}}, second{BasicTokenizerOptions{}};
    for (const char* line : {"low lower lowest", "new newer newest", "wide wider widest"})
        first.add_line(line);
    for (const char* line : {"widest wide wider", "newest newer new", "lowest low lower"})
        second.add_line(line);

    EXPECT_EQ(train_wordpiece(first.words(), {}), train_wordpiece(second.words(), {}));
}

}  // namespace
}  // namespace hetseq
