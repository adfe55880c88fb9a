#include "hetseq/text/scores/bleu_tokenizer.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "hetseq/text/code_points.hpp"

#include "text/bleu_reference.hpp"

namespace hetseq {
namespace {

// The words with one blank between them.
std::string words_of(const std::string& segment, BleuTokenizer tokenizer) {
    std::string result;
    const std::u32string divided = tokenized(decode_utf8(segment), tokenizer);
    for (const std::u32string_view word : words_between_blanks(divided))
        result += (result.empty() ? "" : " ") + encode_utf8(word);
    return result;
}

TEST(BleuTokenizerTest, DividesAsMteval13a) {
    const auto tokenizer = BleuTokenizer::mteval_13a;
    EXPECT_EQ(words_of("Hello, world! (It's 3.5 o'clock.)", tokenizer),
              "Hello , world ! ( It's 3.5 o'clock . )");
    EXPECT_EQ(words_of("1,000 1,a 3-4 x-4 .5", tokenizer), "1,000 1 , a 3 - 4 x-4 . 5");
    EXPECT_EQ(words_of("&quot;A&quot; &amp;lt; <skipped>B", tokenizer), "\" A \" < B");
}

TEST(BleuTokenizerTest, DividesAtPunctuationAndSymbolsOfAllScripts) {
    const auto tokenizer = BleuTokenizer::intl;
    EXPECT_EQ(words_of("„Ja“, 1,5 €。", tokenizer), "„ Ja “ , 1,5 € 。");
    // A period after a number stays with it at the end, as in mteval-v14.pl.
    EXPECT_EQ(words_of("in 2017.", tokenizer), "in 2017.");
}

TEST(BleuTokenizerTest, DividesIntoCharactersOrNotAtAll) {
    EXPECT_EQ(words_of("aß ,.", BleuTokenizer::characters), "a ß , .");
    EXPECT_EQ(words_of("a,b  c.\t", BleuTokenizer::none), "a,b c.");
}

TEST(BleuTokenizerTest, DividesNewstest2017AsSacrebleu) {
    const std::filesystem::path path = real_translations() / "tok13a_vectors.json";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is absent (HETSEQ_TEST_DATA)";
    std::ifstream file{path};
    for (const auto& pair : nlohmann::json::parse(file))
        EXPECT_EQ(words_of(pair.at(0).get<std::string>(), BleuTokenizer::mteval_13a),
                  pair.at(1).get<std::string>());
}

// The classes that `intl` asks for are those of Unicode 13, in the `regex` that sacreBLEU uses.
TEST(BleuTokenizerTest, KnowsTheClassesOfAllCharactersOfUnicode13) {
    const auto runs = bleu_reference()
                          .at("characters")
                          .at("classes")
                          .get<std::vector<std::pair<char32_t, std::string>>>();
    // Between two letters, punctuation and symbols stand alone. Between digits, symbols alone do,
    // and between two punctuation marks all but punctuation and numbers leave the marks alone.
    const auto is_alone = [](char32_t before, char32_t character, char32_t after) {
        const std::u32string divided =
            tokenized(std::u32string{before, character, after}, BleuTokenizer::intl);
        return words_between_blanks(divided).size();
    };
    std::size_t checked = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto& [first, name] = runs[i];
        const char32_t end = i + 1 < runs.size() ? runs[i + 1].first : 0x110000;
        for (char32_t character = first; name != "unassigned" && character < end; ++character) {
            if (is_blank(character))
                continue;
            const bool punctuation = is_alone('a', character, 'a') == 3;
            const bool symbol = is_alone('1', character, '1') == 3;
            const bool number = !symbol && is_alone('1', '.', character) == 1;
            const std::string found = symbol ? "S" : punctuation ? "P" : number ? "N" : "other";
            ASSERT_EQ(found, name) << "U+" << std::hex << static_cast<unsigned>(character);
            ++checked;
        }
    }
    EXPECT_GT(checked, 140000U);
}

}  // namespace
}  // namespace hetseq
