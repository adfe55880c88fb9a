#include "hetseq/text/tokenizer_config.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hetseq
