#include "hetseq/prepare/files/text_index.hpp"

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "data/text_files_test.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::HasSubstr;

constexpr std::int64_t small_piece = 100;  // [bytes]

// Lines of unlike lengths, some empty and some longer than a piece.
std::string line_text(std::int64_t line) {
    const std::int64_t length = line % 50 == 49 ? 350 : line % 7 == 0 ? 0 : line * 13 % 40;
    return std::to_string(line) + std::string(static_cast<std::size_t>(length), 'x');
}

std::string text_of(std::int64_t begin, std::int64_t end) {
    std::string text;
    for (std::int64_t line = begin; line < end; ++line)
        text += line % 7 == 0 && line % 2 == 0 ? "\n" : line_text(line) + "\n";
    return text;
}

class TextIndexTest : public test::TextFilesTest {
protected:
    test::Thrown thrown_for(const std::vector<std::string>& paths) {
        return thrown_by([&] { index_texts(world_, paths, small_piece); });
    }
};

TEST_F(TextIndexTest, LinesAndBytesAreCounted) {
    const std::string first = text_of(0, 500);
    const std::string second = text_of(500, 620) + "no end";

    const auto texts =
        index_texts(world_, {file("a", first), file("b.gz", second), file("c", "\n")}, small_piece);

    ASSERT_EQ(texts.size(), 3U);
    EXPECT_EQ(texts[0].lines, 500);
    EXPECT_EQ(texts[0].bytes, std::ssize(first));
    EXPECT_GT(texts[0].places.size(), 50U);
    EXPECT_EQ(texts[1].lines, 121);
    EXPECT_EQ(texts[1].bytes, std::ssize(second));
    EXPECT_GT(texts[1].places.size(), 10U);
    EXPECT_EQ(texts[2].lines, 1);
    EXPECT_EQ(total_lines(texts), 622);
}

TEST_F(TextIndexTest, AReturnWithinALineIsNamedByFileAndLine) {
    const std::string text = "\xEF\xBB\xBF" + text_of(0, 230) + "one\rtwo\n" + text_of(230, 400);
    const std::string path = file("a", text);

    for (const std::int64_t piece : {std::int64_t{30}, small_piece, usual_text_piece}) {
        const auto of_lines = thrown_by([&] { index_texts(world_, {path}, piece); });
        const auto of_documents = thrown_by([&] { index_documents(world_, {path}, piece); });
        const auto of_words = thrown_by([&] {
            read_lines_among_ranks(
                world_, {path}, [](auto) {}, piece);
        });
        EXPECT_EQ(of_lines.code, ExitCode::bad_data);
        EXPECT_THAT(of_lines.text, HasSubstr("a, line 231 holds a carriage return"));
        EXPECT_THAT(of_documents.text, HasSubstr("a, line 231 holds a carriage return"));
        EXPECT_THAT(of_words.text, HasSubstr("a, line 231 holds a carriage return"));
    }
}

TEST_F(TextIndexTest, PlacesAreTheSameInPlainAndGzipFiles) {
    const auto texts =
        index_texts(world_, {file("a", text_of(0, 900)), file("a.gz", text_of(0, 900))}, 1 << 20);

    ASSERT_EQ(texts[0].places.size(), texts[1].places.size());
    EXPECT_EQ(texts[0].places[0].offset, 0);
    EXPECT_EQ(texts[1].places[0].line, 0);
}

// Lines that follow a blank one, or begin the text.
std::vector<std::int64_t> document_lines(const std::string& text) {
    std::vector<std::int64_t> lines;
    std::istringstream stream{text};
    bool follows_blank = true;
    std::int64_t number = 0;
    for (std::string line; std::getline(stream, line); ++number) {
        const bool is_blank = line.find_first_not_of(" \r") == std::string::npos;
        if (follows_blank && !is_blank)
            lines.push_back(number);
        follows_blank = is_blank;
    }
    return lines;
}

TEST_F(TextIndexTest, DocumentsBeginBehindBlankLinesWhereverPiecesEnd) {
    std::string text = "  \n";
    for (int line = 0; line < 700; ++line)
        text += line % 11 == 5 || line % 11 == 6 || line % 29 == 0
                    ? (line % 3 == 0 ? " \r\n" : "\n")
                    : line_text(line) + "\n";
    const std::vector<std::int64_t> expected = document_lines(text);
    const std::string plain = file("a", text), packed = file("a.gz", text);

    for (const std::int64_t piece : {1, 2, 3, 7, 50, 100, 1000, 1 << 20}) {
        const auto texts = index_documents(world_, {plain, packed}, piece, 1);
        for (const TextIndex& index : texts) {
            EXPECT_EQ(index.documents, std::ssize(expected)) << piece;
            EXPECT_EQ(index.lines, 701);
            std::vector<std::int64_t> found;
            for (const LinePlace& place : index.places)
                found.push_back(place.line);
            ASSERT_EQ(found.front(), 0);
            found.erase(found.begin());  // the text's first line, a blank one
            EXPECT_EQ(found, expected) << piece;
        }
    }
}

TEST_F(TextIndexTest, EveryLineIsReadOnOneRank) {
    const std::string text = text_of(0, 300) + "caf\xe9\n" + text_of(300, 400) + "no end";
    const std::vector<std::string> files{file("a", text), file("b.gz", text), file("empty", "")};
    std::map<std::string, std::int64_t> expected;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);)
        expected[line] += 2;

    for (const std::int64_t piece : {std::int64_t{30}, small_piece, usual_text_piece}) {
        std::string mine;
        std::int64_t count = 0;
        read_lines_among_ranks(
            world_,
            files,
            [&](std::string_view line) {
                mine.append(line).append("\n");
                ++count;
            },
            piece);

        std::map<std::string, std::int64_t> found;
        for (const std::string& lines : world_.all_gather(mine)) {
            std::istringstream read{lines};
            for (std::string line; std::getline(read, line);)
                ++found[line];
        }
        EXPECT_EQ(found, expected) << piece;
        if (piece == small_piece) {
            EXPECT_GT(count, 0);
        }
    }
}

TEST_F(TextIndexTest, PlacesOfDocumentsAreApart) {
    std::string text;
    for (int document = 0; document < 400; ++document)
        text += "a sentence\n\n";
    const auto texts = index_documents(world_, {file("a", text)}, 1 << 20, 100);

    EXPECT_EQ(texts[0].documents, 400);
    ASSERT_GT(texts[0].places.size(), 30U);
    for (std::size_t i = 1; i < texts[0].places.size(); ++i)
        EXPECT_GE(texts[0].places[i].offset, texts[0].places[i - 1].offset + 100);
}

TEST_F(TextIndexTest, DocumentsNeedNotBeUtf8ButMustBeThere) {
    const auto texts = index_documents(world_, {file("a", "caf\xe9\n")}, small_piece, 1);
    const test::Thrown blank = thrown_by([&] {
        index_documents(world_, {file("b", "x\n"), file("c", "\n \n")}, small_piece, 1);
    });

    EXPECT_EQ(texts[0].documents, 1);
    EXPECT_EQ(blank.code, ExitCode::bad_data);
    EXPECT_THAT(blank.text, HasSubstr("c has no document (all of its 2 lines are blank)"));
}

TEST_F(TextIndexTest, ACursorGoesToAnyLine) {
    const auto texts = index_texts(
        world_,
        {file("a", text_of(0, 300)), file("b.gz", text_of(300, 650)), file("c", text_of(650, 700))},
        small_piece);
    std::vector<std::string> expected;
    TextCursor whole{texts};
    for (std::int64_t line = 0; line < 700; ++line)
        expected.emplace_back(whole.next());
    EXPECT_EQ(expected[1], line_text(1));
    EXPECT_EQ(expected[699], line_text(699));

    TextCursor cursor{texts};
    for (const std::size_t line : {299U, 300U, 649U, 1U, 650U, 699U, 350U, 450U, 0U}) {
        cursor.move_to(static_cast<std::int64_t>(line));
        EXPECT_EQ(cursor.next(), expected[line]) << line;
        if (line + 1 < expected.size()) {
            EXPECT_EQ(cursor.next(), expected[line + 1]) << line;
        }
    }
}

TEST_F(TextIndexTest, TheFirstBadLineIsNamedByAllRanks) {
    std::string text = text_of(0, 400);
    const auto thrown =
        thrown_for({file("good", text), file("bad", text + "caf\xe9\n" + text + "\xff\n" + text)});
    const auto zipped = thrown_for({file("bad.gz", text + "caf\xe9\n" + text)});

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("bad, line 401 is not UTF-8"));
    EXPECT_THAT(zipped.text, HasSubstr("bad.gz, line 401 is not UTF-8"));
}

TEST_F(TextIndexTest, EmptyAndMissingFilesAreNamed) {
    const std::string good = file("good", "a\n");

    EXPECT_THAT(thrown_for({good, file("none", "")}).text, HasSubstr("none is empty"));
    EXPECT_THAT(thrown_for({good, file("none.gz", "")}).text, HasSubstr("none.gz is empty"));
    const auto missing = thrown_for({good, folder_ / "missing"});
    EXPECT_EQ(missing.code, ExitCode::missing_input);
    EXPECT_THAT(missing.text, HasSubstr("no such file: " + (folder_ / "missing")));
}

TEST_F(TextIndexTest, AFileThatShrinksMeanwhileIsNoticed) {
    const auto texts = index_texts(world_, {file("a", text_of(0, 300))}, small_piece);
    file("a", text_of(0, 200));

    const auto thrown = thrown_by([&] {
        TextCursor cursor{texts};
        cursor.move_to(250);
        cursor.next();
    });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("a changed while it was read"));
}

}  // namespace
}  // namespace hetseq
