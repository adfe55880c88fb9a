#include "hetseq/util/files/atomic_file.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using test::TemporaryFolder;

TEST(AtomicFileTest, AppearsOnlyWhenCommitted) {
    const TemporaryFolder folder;
    AtomicFile file{folder / "a"};
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));

    file.commit();

    EXPECT_EQ(folder.read("a"), "one two");
    EXPECT_EQ(folder.size(), 1);
}

TEST(AtomicFileTest, AFinishedOneLacksItsNameAlone) {
    const TemporaryFolder folder;
    {
        AtomicFile file{folder / "a"}, left{folder / "b"};
        file.write("all");
        left.write("of it");
        file.finish();
        left.finish();
        EXPECT_FALSE(std::filesystem::exists(folder / "a"));
        EXPECT_EQ(file.commit().bytes, 3);
    }

    EXPECT_EQ(folder.read("a"), "all");
    EXPECT_EQ(folder.size(), 1);
}

TEST(AtomicFileTest, WithoutCommitTheFormerFileStaysAndNothingIsLeft) {
    const TemporaryFolder folder;
    folder.write("a", "former");

    { AtomicFile{folder / "a"}.write("half a file"); }

    EXPECT_EQ(folder.read("a"), "former");
    EXPECT_EQ(folder.size(), 1);
}

// As of two hosts, or of containers that number their processes alike.
TEST(AtomicFileTest, WritersOfOneFileDoNotMeet) {
    const TemporaryFolder folder;
    AtomicFile one{folder / "a"};
    AtomicFile other{folder / "a"};
    one.write("one");
    other.write("other");

    one.commit();
    EXPECT_EQ(folder.read("a"), "one");
    other.commit();

    EXPECT_EQ(folder.read("a"), "other");
    EXPECT_EQ(folder.size(), 1);
}

TEST(AtomicFileTest, WhereItMayNotHaveItsNameTheFormerFileStays) {
    const TemporaryFolder folder;
    folder.write("a", "former");
    {
        AtomicFile file{folder / "a"};
        file.write("new");
        EXPECT_THROW(file.commit([] { throw BadConfig("not mine"); }), BadConfig);
    }
    EXPECT_EQ(folder.read("a"), "former");
    EXPECT_EQ(folder.size(), 1);
}

// Longer than what is written at once, in pieces that end anywhere.
TEST(AtomicFileTest, ALargeFileIsWhatWasWrittenToTheByte) {
    const TemporaryFolder folder;
    std::string content;
    for (std::int64_t i = 0; content.size() < (std::size_t{5} << 20) + 123; ++i)
        content += std::to_string(i * i) + ",";
    AtomicFile file{folder / "a"};
    for (std::size_t begin = 0, piece = 1; begin < content.size(); begin += piece, piece *= 3)
        file.write(std::string_view(content).substr(begin, piece));

    const FileDigest digest = file.commit();

    EXPECT_EQ(folder.read("a"), content);
    EXPECT_EQ(digest, digest_of(folder / "a"));
}

TEST(AtomicFileTest, ReplacesAFormerFile) {
    const TemporaryFolder folder;
    folder.write("a", "a former file that is longer");

    write_atomically(folder / "a", "new");

    EXPECT_EQ(folder.read("a"), "new");
}

TEST(AtomicFileTest, AnUnwritablePlaceIsAnIoErrorThatNamesTheFile) {
    const TemporaryFolder folder;
    try {
        write_atomically(folder / "absent/a", "text");
        FAIL() << "written";
    } catch (const IoError& error) {
        EXPECT_NE(std::string(error.what()).find("absent/a"), std::string::npos) << error.what();
    }
}

TEST(AtomicFileTest, AFolderOfTheNameIsAnIoErrorThatLeavesNothing) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "a");

    EXPECT_THROW(write_atomically(folder / "a", "text"), IoError);

    EXPECT_EQ(folder.size(), 1);
}

}  // namespace
}  // namespace hetseq
