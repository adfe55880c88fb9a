#include "app/lines/line_source.hpp"

#include <fstream>
#include <optional>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"
#include <fcntl.h>
#include <gmock/gmock.h>

namespace hetseq {
namespace {

/// A pipe that a test writes to.
class Pipe {
public:
    Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
    ~Pipe() {
        ::close(ends_[0]);
        close();
    }
    void write(const std::string& text) {
        EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    void close() {
        if (ends_[1] >= 0)
            ::close(ends_[1]);
        ends_[1] = -1;
    }
    int reading_end() const { return ends_[0]; }

private:
    int ends_[2] = {-1, -1};
};

TEST(LineSourceTest, GivesLinesAsTheyArrive) {
    Pipe pipe;
    LineSource lines(pipe.reading_end(), "the pipe");
    EXPECT_FALSE(lines.read(0));

    pipe.write("one\n\ntw");
    EXPECT_TRUE(lines.read(1000));
    EXPECT_EQ(lines.next(), "one");
    EXPECT_EQ(lines.next(), "");
    EXPECT_EQ(lines.next(), std::nullopt);
    pipe.write("o\nthree");
    EXPECT_TRUE(lines.read(1000));
    EXPECT_EQ(lines.next(), "two");
    EXPECT_EQ(lines.next(), std::nullopt);
    pipe.close();
    EXPECT_FALSE(lines.read(1000));
    EXPECT_TRUE(lines.at_end());
    EXPECT_EQ(lines.next(), "three");
    EXPECT_EQ(lines.next(), std::nullopt);
    EXPECT_EQ(lines.lines(), 4);
}

TEST(LineSourceTest, LinesMayEndWithCrlfBehindAByteOrderMark) {
    Pipe pipe;
    LineSource lines(pipe.reading_end(), "the pipe");
    pipe.write("\xEF\xBB\xBFone\r\n\r\ntwo\rthree\n");
    lines.read(1000);

    EXPECT_EQ(lines.next(), "one");
    EXPECT_EQ(lines.next(), "");
    EXPECT_THAT([&] { lines.next(); },
                testing::ThrowsMessage<BadData>(
                    testing::HasSubstr("the pipe, line 3 holds a carriage return")));
}

// However its bytes arrive.
TEST(LineSourceTest, ALineThatIsTooLongIsAnErrorAlsoWhereItsEndHasCome) {
    const test::TemporaryFolder folder;
    std::ofstream{folder / "text"} << std::string(LineSource::longest_line + 10, 'a') << "\nb\n";
    const int file = ::open((folder / "text").c_str(), O_RDONLY);
    LineSource lines(file, "the file");
    while (lines.read(0)) {
    }

    EXPECT_THAT([&] { lines.next(); },
                testing::ThrowsMessage<BadData>(
                    testing::HasSubstr("the file, line 1 is longer than 1 MiB")));
    ::close(file);
}

TEST(LineSourceTest, NamesTheLineThatIsNotUtf8) {
    Pipe pipe;
    LineSource lines(pipe.reading_end(), "the pipe");
    pipe.write(
        "gut\nschl\xFF"
        "echt\n");
    lines.read(1000);
    EXPECT_EQ(lines.next(), "gut");

    try {
        lines.next();
        FAIL();
    } catch (const BadData& error) {
        EXPECT_THAT(error.what(),
                    testing::HasSubstr("the pipe, line 2 is not UTF-8 (byte 5 of it)"));
    }
}

}  // namespace
}  // namespace hetseq
