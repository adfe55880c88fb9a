#include "hetseq/prepare/files/text_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/error_text.hpp"
#include "data/text_files.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::ElementsAre;
using testing::HasSubstr;

using Lines = std::vector<std::string>;

Lines rest_of(TextReader& reader) {
    Lines lines;
    for (std::string_view line; reader.next(line);)
        lines.emplace_back(line);
    return lines;
}

class TextReaderTest : public testing::TestWithParam<bool> {
protected:
    // Plain or gzip, as the parameter says.
    std::string file(const std::string& text) {
        const std::string path = folder_ / (GetParam() ? "text.gz" : "text");
        test::write_text(path, text, GetParam());
        return path;
    }

    test::TemporaryFolder folder_;
};

TEST_P(TextReaderTest, LinesComeWithoutTheirEnds) {
    TextReader reader{file("one\ntwo\r\n\n  four \nno end")};

    EXPECT_THAT(rest_of(reader), ElementsAre("one", "two", "", "  four ", "no end"));
}

TEST_P(TextReaderTest, AByteOrderMarkIsNoText) {
    TextReader reader{file("\xEF\xBB\xBFone\ntwo\n")};

    EXPECT_THAT(rest_of(reader), ElementsAre("one", "two"));
    reader.seek(0);
    EXPECT_THAT(rest_of(reader), ElementsAre("one", "two"));
}

TEST_P(TextReaderTest, TextInUtf16IsNamed) {
    TextReader reader{file(std::string("\xFF\xFEo\0\n\0", 6))};

    const auto thrown = thrown_by([&] { rest_of(reader); });
    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("is text in UTF-16 (only UTF-8 is read)"));
}

TEST_P(TextReaderTest, TheEndOfTheLastLineIsNoLine) {
    TextReader reader{file("one\ntwo\n")};

    EXPECT_THAT(rest_of(reader), ElementsAre("one", "two"));
}

TEST_P(TextReaderTest, LinesMayBeLongerThanTheBuffer) {
    const std::string longest(3 << 20, 'x');
    TextReader reader{file("a\n" + longest + "\nb\n")};

    EXPECT_THAT(rest_of(reader), ElementsAre("a", longest, "b"));
}

TEST_P(TextReaderTest, AnyLineCanBeSoughtByItsOffset) {
    std::string text;
    Lines lines;
    for (std::int64_t i = 0; i < 100'000; ++i) {
        lines.push_back("line " + std::to_string(i * i));
        text += lines.back() + "\n";
    }
    TextReader reader{file(text)};
    std::vector<std::int64_t> offsets;
    for (std::string_view line; offsets.push_back(reader.offset()), reader.next(line);) {
    }

    for (const std::size_t line : {0U, 1U, 99'999U, 50'000U, 50'001U, 60'000U, 3U, 100'000U}) {
        reader.seek(offsets[line]);
        std::string_view read;
        EXPECT_EQ(reader.offset(), offsets[line]);
        EXPECT_EQ(reader.next(read), line < lines.size());
        if (line < lines.size()) {
            EXPECT_EQ(read, lines[line]);
        }
    }
    TextReader fresh{folder_ / (GetParam() ? "text.gz" : "text")};
    fresh.seek(offsets[70'000]);
    EXPECT_EQ(rest_of(fresh), Lines(lines.begin() + 70'000, lines.end()));
}

TEST_P(TextReaderTest, GzipIsKnownByItsFirstBytes) {
    EXPECT_EQ(is_gzip_file(file("text\n")), GetParam());
    EXPECT_EQ(is_gzip_file(file("")), GetParam());
}

TEST_P(TextReaderTest, EndlessLinesAreRefused) {
    TextReader reader{file("a\n" + std::string(17 << 20, 'x') + "\n")};

    const auto thrown = thrown_by([&] { rest_of(reader); });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("has a line of more than 16 MiB (it begins at byte 2)"));
}

INSTANTIATE_TEST_SUITE_P(PlainAndGzip, TextReaderTest, testing::Values(false, true));

TEST(GzipTextTest, TruncatedDataAreRefused) {
    const test::TemporaryFolder folder;
    std::string text;
    for (int i = 0; i < 50'000; ++i)
        text += std::to_string(i * 7919 % 50'021) + "\n";
    test::write_text(folder / "a.gz", text, true);
    std::filesystem::resize_file(folder / "a.gz", std::filesystem::file_size(folder / "a.gz") / 2);
    TextReader reader{folder / "a.gz"};

    const auto thrown = thrown_by([&] { rest_of(reader); });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("a.gz is truncated or damaged"));
}

TEST(GzipTextTest, AMissingFileIsNamed) {
    const auto thrown = thrown_by([] { TextReader{"/nowhere/a.gz"}; });

    EXPECT_EQ(thrown.code, ExitCode::missing_input);
    EXPECT_THAT(thrown.text, HasSubstr("no such file: /nowhere/a.gz"));
}

}  // namespace
}  // namespace hetseq
