#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/session/options/merged_values.hpp"
#include "hetseq/session/options/part_option_table.hpp"

namespace hetseq {
namespace {

TEST(TaskDefaultsTest, EachIsAnOptionWithAValueItAccepts) {
    const Parts parts = builtin_parts();
    const OptionTable table = option_table(parts);
    for (const std::string& task : parts.tasks.names()) {
        EXPECT_FALSE(parts.tasks.get(task).defaults.empty()) << task;
        for (const auto& [name, value] : parts.tasks.get(task).defaults) {
            const OptionSpec* spec = find_option(table, name);
            ASSERT_NE(spec, nullptr) << task << ": --" << name;
            EXPECT_NO_THROW(spec->check(value)) << task << ": --" << name << ' ' << value;
        }
    }
}

TEST(TaskDefaultsTest, WhatTheyNameExists) {
    const Parts parts = builtin_parts();
    for (const std::string& task : parts.tasks.names()) {
        const Options options = typed_options(merged_values({{{"task", task}}, {}}, parts));

        EXPECT_NO_THROW(parts.optimizers.get(options.parts.optimizer.name)) << task;
        EXPECT_NO_THROW(parts.schedules.get(options.parts.schedule.name)) << task;
        const ByRank<std::int64_t>& capacity =
            options.max_sentences.is_empty() ? options.max_tokens : options.max_sentences;
        EXPECT_GT(capacity.for_all().value_or(0), 0) << task;
    }
}

// A checkpoint holds all values as JSON.
TEST(EncodingTest, OtherBytesThanUtf8AreRefused) {
    EXPECT_NO_THROW(check_encoding({{"data", "m\xc3\xbcller/*.h5"}}));
    try {
        check_encoding({{"data", "m\xfcller/*.h5"}});
        FAIL() << "they are taken";
    } catch (const BadConfig& error) {
        EXPECT_NE(std::string(error.what()).find("--data"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace hetseq
