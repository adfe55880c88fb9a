#include "hetseq/text/tokenizer_config.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

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
