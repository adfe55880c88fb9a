#include "hetseq/text/number_names.hpp"

#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

// Names by num2words: tests/reference/number_names.py.
TEST(NumberNamesTest, NamesAreThoseOfNum2words) {
    std::ifstream file{"tests/reference/number_names.json"};
    const nlohmann::json rows = nlohmann::json::parse(file);
    ASSERT_GT(rows.size(), 400U);
    for (const auto& row : rows) {
        EXPECT_EQ(english_number(row[0]), row[1]);
        EXPECT_EQ(german_number(row[0]), row[2]);
    }
}

TEST(NumberNamesTest, UnlikeNumbersHaveUnlikeNames) {
    constexpr std::int64_t numbers = 110'000;
    std::set<std::string> english;
    std::set<std::string> german;
    for (std::int64_t number = 0; number < numbers; ++number) {
        english.insert(english_number(number * 89));
        german.insert(german_number(number * 89));
    }

    EXPECT_EQ(std::ssize(english), numbers);
    EXPECT_EQ(std::ssize(german), numbers);
}

}  // namespace
}  // namespace hetseq
