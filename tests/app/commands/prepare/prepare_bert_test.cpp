#include "app/commands/prepare/prepare_bert.hpp"

#include <string>

#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using testing::HasSubstr;

PreparedBert prepared() {
    PreparedBertSet set{.name = "train", .text_bytes = 3'000'000, .documents = 12};
    set.dropped_documents = 2;
    set.tokens = 800;
    set.unknown = 8;
    set.pairs = 10;
    set.pair_tokens = 900;
    set.places = 1200;
    set.random_next = 4;
    set.cut_pairs = 3;
    set.cut_tokens = 33;
    set.predictions = {.masked = 80, .kept = 9, .replaced = 11};
    set.shards = 2;
    return {.sets = {set}, .vocabulary = 30522, .seconds = 1.5};
}

TEST(PrepareBertReportTest, TheTablesHaveTheRates) {
    const std::string text = prepared_bert_text(prepared());

    for (const char* part : {"train  3           12         2",
                             "40 %",
                             "25 %",
                             "11.1 %",
                             "80 %",
                             "9 %",
                             "30522 pieces in the vocabulary",
                             "2 MB/s of text"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(PrepareBertReportTest, JsonHasNumbers) {
    const nlohmann::json json = nlohmann::json::parse(prepared_bert_json(prepared()));
    const nlohmann::json& set = json["sets"]["train"];

    EXPECT_EQ(set["documents_dropped"], 2);
    EXPECT_EQ(set["predictions"], 100);
    EXPECT_DOUBLE_EQ(set["mask_rate"], 100.0 / 900);
    EXPECT_DOUBLE_EQ(set["random_next_rate"], 0.4);
    EXPECT_DOUBLE_EQ(set["padding"], 0.25);
    EXPECT_EQ(set["cut_tokens"], 33);
    EXPECT_DOUBLE_EQ(json["megabytes_per_second"], 2);
}

// Without any pair there is nothing to divide by.
TEST(PrepareBertReportTest, NothingIsDividedByZero) {
    const nlohmann::json json =
        nlohmann::json::parse(prepared_bert_json({.sets = {{.name = "train"}}, .seconds = 1}));

    EXPECT_EQ(json["sets"]["train"]["mask_rate"], 0);
}

}  // namespace
}  // namespace hetseq
