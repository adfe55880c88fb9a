#include "hetseq/text/bert/tokenizer_config.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

nlohmann::json config(const BasicTokenizerOptions& options) {
    return nlohmann::json::parse(tokenizer_config_json(options));
}

TEST(TokenizerConfigTest, SaysWhatBecomesOfCaseAndAccents) {
    const auto usual = config({});
    const auto cased = config(BasicTokenizerOptions::cased());
    const auto accents = config({.lower_case = true, .strip_accents = false});

    EXPECT_EQ(usual["tokenizer_class"], "BertTokenizer");
    EXPECT_EQ(usual["do_lower_case"], true);
    EXPECT_FALSE(usual.contains("strip_accents"));
    EXPECT_EQ(cased["do_lower_case"], false);
    EXPECT_FALSE(cased.contains("strip_accents"));
    EXPECT_EQ(accents["do_lower_case"], true);
    EXPECT_EQ(accents["strip_accents"], false);
}

TEST(TokenizerConfigTest, AVocabularyIsReadFromATokenizersJson) {
    const std::string text = R"({"version": "1.0", "model": {"type": "WordPiece",
        "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"b": 2, "[UNK]": 0, "##\u00e9": 1}}})";

    EXPECT_EQ(vocabulary_of_tokenizer_json(text, "tokenizer.json"), "[UNK]\n##\u00e9\nb\n");
}

TEST(TokenizerConfigTest, OtherTokenizersAreRefused) {
    const std::pair<const char*, const char*> cases[] = {
        {"[UNK]", "'model'"},
        {R"({"model": 1})", "'model'"},
        {R"({"model": {"type": "BPE", "vocab": {}}})", "type is \"BPE\""},
        {R"({"model": {"continuing_subword_prefix": "@@", "vocab": {}}})", "\"@@\""},
        {R"({"model": {"unk_token": "<unk>", "vocab": {}}})", "\"<unk>\""},
        {R"({"model": {"type": "WordPiece"}})", "'vocab'"},
        {R"({"model": {"vocab": {"a": 0, "b": 2}}})", "0, 1, 2"},
        {R"({"model": {"vocab": {"a": 0, "b": 0}}})", "0, 1, 2"},
        {R"({"model": {"vocab": {"a": -1}}})", "0, 1, 2"},
        {R"({"model": {"vocab": {"a": "0"}}})", "0, 1, 2"},
        {R"({"model": {"vocab": {"a\nb": 0}}})", "0, 1, 2"}};
    for (const auto& [text, problem] : cases) {
        try {
            vocabulary_of_tokenizer_json(text, "tokenizer.json");
            ADD_FAILURE() << text;
        } catch (const BadData& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(problem), std::string::npos) << message;
            EXPECT_NE(message.find("tokenizer.json"), std::string::npos) << message;
        }
    }
}

TEST(TokenizerConfigTest, ALargeTokenizersJsonIsRefusedByTheLimit) {
    try {
        vocabulary_of_tokenizer_json(std::string((16 << 20) + 1, ' '), "tokenizer.json");
        FAIL();
    } catch (const BadData& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("more than 16 MiB"));
    }
}

TEST(TokenizerConfigTest, IsReadAsItWasWritten) {
    for (const bool lower_case : {true, false})
        for (const bool strip_accents : {true, false}) {
            const BasicTokenizerOptions options{lower_case, strip_accents};

            const auto read = parse_tokenizer_config(tokenizer_config_json(options), "config");

            EXPECT_EQ(read.lower_case, lower_case);
            EXPECT_EQ(read.strip_accents, strip_accents);
        }
    EXPECT_TRUE(parse_tokenizer_config("{}", "config").lower_case);
    EXPECT_THROW(parse_tokenizer_config("[]", "config"), BadData);
    EXPECT_THROW(parse_tokenizer_config("{\"do_lower_case\": 1}", "config"), BadData);
}

}  // namespace
}  // namespace hetseq
