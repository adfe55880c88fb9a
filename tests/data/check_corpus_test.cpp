#include "hetseq/data/check_corpus.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <variant>

#include <gtest/gtest.h>

#include "hetseq/comm/agree.hpp"

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using test::formula_sum;
using test::thrown_by;
using testing::HasSubstr;

std::int64_t integer(const Number& number) {
    return std::get<std::int64_t>(number);
}

TEST(CheckCorpusTest, SumsMatchTheFormulas) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    const std::int64_t n = test::write_bert_like_corpus(world, folder, {17, 0, 5000, 301});

    const CorpusReport report = check_corpus(world, folder.path(), test::bert_like_schema());

    ASSERT_EQ(report.shards.size(), 4U);
    EXPECT_EQ(report.shards[2].path, folder / "shard-00002.h5");
    EXPECT_EQ(report.shards[2].samples, 5000);
    EXPECT_EQ(report.samples, n);
    ASSERT_EQ(report.fields.size(), 4U);
    EXPECT_EQ(report.fields[0].name, "input_ids");
    EXPECT_EQ(report.fields[0].type, "int32");
    EXPECT_EQ(report.fields[0].row_shape, std::vector<std::int64_t>{16});
    EXPECT_EQ(integer(report.fields[0].sum), formula_sum(n, test::sequence, test::input_id));
    EXPECT_EQ(integer(report.fields[0].minimum), 0);
    EXPECT_EQ(integer(report.fields[0].maximum), 999);
    EXPECT_EQ(integer(report.fields[1].sum), formula_sum(n, test::sequence, test::input_mask));
    EXPECT_EQ(integer(report.fields[2].sum),
              formula_sum(n, test::predictions, test::masked_position));
    EXPECT_EQ(integer(report.fields[3].sum),
              formula_sum(n, 1, [](auto sample, auto) { return test::next_sentence(sample); }));
    EXPECT_TRUE(report.fields[3].row_shape.empty());
}

TEST(CheckCorpusTest, SumsAndLengthsOfRaggedFields) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    const std::int64_t n = test::write_ragged_corpus(world, folder, {17, 0, 5000, 301});
    const auto sum = [&](auto length, auto value) {
        return test::sum_over(0, n, [&](std::int64_t sample) {
            return formula_sum(
                1, length(sample), [&](auto, auto column) { return value(sample, column); });
        });
    };

    const CorpusReport report = check_corpus(world, folder.path(), test::ragged_schema());

    ASSERT_EQ(report.fields.size(), 5U);
    EXPECT_EQ(report.fields[0].name, "source");
    EXPECT_TRUE(report.fields[0].is_ragged);
    EXPECT_EQ(report.fields[0].row_shape, std::vector<std::int64_t>{-1});
    EXPECT_EQ(report.fields[0].values, test::sum_over(0, n, test::source_length));
    EXPECT_EQ(report.fields[0].longest, 500);
    EXPECT_EQ(integer(report.fields[0].sum), sum(test::source_length, test::source_value));
    EXPECT_FALSE(report.fields[1].is_ragged);
    EXPECT_EQ(integer(report.fields[1].maximum), 4);
    EXPECT_EQ(report.fields[2].type, "int64");
    EXPECT_EQ(report.fields[2].longest, 16);
    EXPECT_EQ(integer(report.fields[2].sum), sum(test::target_length, test::target_value));
    EXPECT_EQ(integer(report.fields[3].sum), sum(test::target_length, test::mark_value));
    EXPECT_EQ(integer(report.fields[4].sum), sum(test::place_length, test::place_value));
}

TEST(CheckCorpusTest, WorksWithoutMpi) {
    const HostComm alone = HostComm::serial();
    const test::SharedFolder folder{alone};
    test::write_bert_like_corpus(alone, folder, {17});

    EXPECT_EQ(check_corpus(alone, folder.path(), test::bert_like_schema()).samples, 17);
}

TEST(CheckCorpusTest, TheFirstBadValueInFileOrderIsNamed) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        for (const std::int64_t shard : {0, 1, 2, 3}) {
            auto datasets =
                test::bert_like_datasets(shard * 30000, 30000, test::Storage::contiguous);
            if (shard > 0)
                datasets[0].value = [](auto row, auto) { return row == 20000 ? 5000 : 1; };
            test::write_datasets(folder / test::shard_name(static_cast<std::size_t>(shard)),
                                 datasets);
        }
    });

    const auto thrown =
        thrown_by([&] { check_corpus(world, folder.path(), test::bert_like_schema()); });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text,
                HasSubstr(folder / "shard-00001.h5: dataset 'input_ids', row 20000: value 5000"));
}

CorpusSchema nvidia_schema() {
    const auto tokens = [](const std::string& name, std::int64_t maximum) {
        return FieldSchema{.name = name,
                           .rank = 2,
                           .type = ElementType::int32,
                           .row_shape = {-1},
                           .minimum = 0,
                           .maximum = maximum};
    };
    return {"BERT pretraining",
            {tokens("input_ids", 30521),
             tokens("input_mask", 1),
             tokens("segment_ids", 1),
             tokens("masked_lm_positions", 127),
             tokens("masked_lm_ids", 30521),
             {.name = "next_sentence_labels", .type = ElementType::int8, .row_shape = {}}}};
}

TEST(CheckCorpusTest, NvidiasShardsHaveTheirKnownSums) {
    const char* root = std::getenv("HETSEQ_TEST_DATA");
    const std::string folder = std::string(root != nullptr ? root : "../shared/data") + "/bert";
    std::ifstream file(folder + "/expected.json");
    if (!file)
        GTEST_SKIP() << "no BERT shards in " << folder << " (HETSEQ_TEST_DATA)";
    const auto expected = nlohmann::json::parse(file);
    const HostComm world = test::world();

    const CorpusReport report = check_corpus(world, folder, nvidia_schema());

    EXPECT_EQ(report.shards.size(), expected.size());
    for (const CorpusReport::Field& field : report.fields) {
        std::int64_t sum = 0;
        std::int64_t samples = 0;
        for (const auto& [name, shard] : expected.items()) {
            sum += shard[field.name]["sum"].get<std::int64_t>();
            samples += shard[field.name]["shape"][0].get<std::int64_t>();
            EXPECT_EQ(field.type, shard[field.name]["dtype"].get<std::string>());
        }
        EXPECT_EQ(integer(field.sum), sum) << field.name;
        EXPECT_EQ(report.samples, samples);
    }
}

}  // namespace
}  // namespace hetseq
