#include "hetseq/data/files/fixed_shard_writer.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/files/attachment.hpp"

#include "data/read_dataset.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::read_dataset;

std::vector<std::int32_t> row_of(std::int64_t row) {
    std::vector<std::int32_t> values;
    for (std::int64_t i = 0; i < row % 8; ++i)
        values.push_back(static_cast<std::int32_t>(row * 17 + i));
    return values;
}

class FixedShardWriterTest : public testing::Test {
protected:
    void write(const std::string& name, std::int64_t rows, const std::string& text = "some text") {
        FixedShardWriter writer{
            folder_ / name, rows, {{"ids", 4, 7}, {"flags", 1, 7}, {"label", 1, 0}}};
        writer.attach_text("about", text);
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::vector<std::int32_t> flags(static_cast<std::size_t>(row % 8), 1);
            const std::int32_t label = row % 2 == 0 ? 1 : -1;
            writer.append(0, row_of(row));
            writer.append(1, flags);
            writer.append(2, {&label, 1});
        }
        writer.finish();
        writer.commit();
    }

    test::TemporaryFolder folder_;
};

TEST_F(FixedShardWriterTest, RowsComeBackWithZerosBehindThem) {
    constexpr std::int64_t rows = 30'011;  // several bands, the last one shorter
    write("a.h5", rows);

    const std::vector<std::int64_t> ids = read_dataset(folder_ / "a.h5", "ids");
    const std::vector<std::int64_t> flags = read_dataset(folder_ / "a.h5", "flags");
    const std::vector<std::int64_t> labels = read_dataset(folder_ / "a.h5", "label");
    ASSERT_EQ(std::ssize(ids), 7 * rows);
    ASSERT_EQ(std::ssize(labels), rows);
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::vector<std::int32_t> expected = row_of(row);
        for (std::int64_t i = 0; i < 7; ++i) {
            const bool is_there = i < std::ssize(expected);
            const auto at = static_cast<std::size_t>(7 * row + i);
            ASSERT_EQ(ids[at], is_there ? expected[static_cast<std::size_t>(i)] : 0) << row;
            ASSERT_EQ(flags[at], is_there ? 1 : 0) << row;
        }
        ASSERT_EQ(labels[static_cast<std::size_t>(row)], row % 2 == 0 ? 1 : -1);
    }
}

TEST_F(FixedShardWriterTest, TheSameRowsGiveTheSameBytes) {
    write("a.h5", 5000);
    write("b.h5", 5000);

    EXPECT_EQ(folder_.read("a.h5"), folder_.read("b.h5"));
}

TEST_F(FixedShardWriterTest, AnAttachedTextMayBeLarge) {
    const std::string text(300'000, 'x');
    write("a.h5", 3, text);

    EXPECT_EQ(read_attached_text(folder_ / "a.h5", "about"), text);
    EXPECT_EQ(read_attached_text(folder_ / "a.h5", "other"), std::nullopt);
}

TEST_F(FixedShardWriterTest, AShardMayHaveNoRows) {
    write("a.h5", 0);

    EXPECT_TRUE(read_dataset(folder_ / "a.h5", "ids").empty());
}

TEST_F(FixedShardWriterTest, WithoutCommitNothingStays) {
    {
        FixedShardWriter writer{folder_ / "a.h5", 1, {{"ids", 4, 7}}};
        writer.append(0, row_of(3));
        writer.finish();
    }
    EXPECT_EQ(folder_.size(), 0);
}

}  // namespace
}  // namespace hetseq
