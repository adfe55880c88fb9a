#include "hetseq/prepare/files/idx.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "data/error_text.hpp"
#include "data/idx_files.hpp"
#include <gmock/gmock.h>
#include <zlib.h>

namespace hetseq {
namespace {

using test::idx_bytes;
using test::thrown_by;
using testing::HasSubstr;

TEST(IdxTest, ReadsShapeAndValues) {
    const IdxArray array = parse_idx(idx_bytes({2, 3}, {1, 2, 3, 4, 5, 255}), "x");

    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(array.values, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255}));
}

TEST(IdxTest, EveryPrefixIsRefused) {
    const auto whole = idx_bytes({2, 3}, {1, 2, 3, 4, 5, 6});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto thrown = thrown_by([&] { parse_idx(std::span{whole}.first(size), "part.idx"); });

        EXPECT_EQ(thrown.code, ExitCode::bad_data) << size;
        EXPECT_THAT(thrown.text, HasSubstr("part.idx"));
    }
}

TEST(IdxTest, RefusesWhatIsNotOneArrayOfUnsignedBytes) {
    auto surplus = idx_bytes({1}, {1});
    surplus.push_back(7);
    auto floats = idx_bytes({1}, {1});
    floats[2] = 0x0D;
    auto huge = idx_bytes({1, 1, 1}, {1});
    for (std::size_t i = 4; i < 16; ++i)
        huge[i] = 0xFF;

    EXPECT_THAT(thrown_by([&] { parse_idx(surplus, "x"); }).text,
                HasSubstr("x is truncated or damaged (its header promises 1 values, 2 follow)"));
    EXPECT_THAT(thrown_by([&] { parse_idx(floats, "x"); }).text,
                HasSubstr("its type is 13, expected 8"));
    EXPECT_THAT(thrown_by([&] { parse_idx(huge, "x"); }).text,
                HasSubstr("its dimensions are larger than any file"));
}

}  // namespace
}  // namespace hetseq
