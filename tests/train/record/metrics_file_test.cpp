#include "hetseq/train/record/metrics_file.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

TEST(MetricsFileTest, AppendsLines) {
    const TemporaryFolder folder;
    folder.write("m", "one\n");
    MetricsFile file(folder / "m");
    file.write("two");
    file.finish();
    EXPECT_EQ(folder.read("m"), "one\ntwo\n");
}

TEST(MetricsFileTest, LinesThatCouldNotBeWrittenFollowLater) {
    const TemporaryFolder folder;
    MetricsFile file(folder / "later/m");
    file.write("one");
    EXPECT_NO_THROW(file.finish());
    fs::create_directory(folder / "later");
    file.write("two");
    file.finish();
    EXPECT_EQ(folder.read("later/m"), "one\ntwo\n");
}

TEST(MetricsFileTest, LinesThatSomebodyRemovesAreSaidAtOnceAndAtTheEnd) {
    for (const bool whole : {true, false}) {
        const TemporaryFolder folder;
        folder.write("m", "one\n");
        MetricsFile file(folder / "m");
        file.write("two");
        if (whole)
            fs::remove(folder / "m");
        else
            folder.write("m", "one\n");

        testing::internal::CaptureStderr();
        file.write("three");
        EXPECT_NE(testing::internal::GetCapturedStderr().find("somebody removed"),
                  std::string::npos);
        testing::internal::CaptureStderr();
        file.write("four");
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
        testing::internal::CaptureStderr();
        file.finish();
        EXPECT_NE(testing::internal::GetCapturedStderr().find("lacks lines"), std::string::npos);

        EXPECT_EQ(folder.read("m"), (whole ? "" : "one\n") + std::string("three\nfour\n"));
    }
}

TEST(MetricsFileTest, IsCutBackToAnUpdate) {
    const TemporaryFolder folder;
    const std::string kept = R"({"kind":"train","update":5})"
                             "\n"
                             R"({"kind":"valid","update":6})"
                             "\n";
    folder.write("m", kept + "{\"update\":7}\n{\"update\":6}\n{\"update\":");
    cut_metrics(folder / "m", 6);
    EXPECT_EQ(folder.read("m"), kept + "{\"update\":6}\n");
    EXPECT_NO_THROW(cut_metrics(folder / "none", 6));
}

TEST(MetricsFileTest, ALastLineWithoutItsEndIsCut) {
    const TemporaryFolder folder;
    folder.write("m", "{\"update\":1}\n{\"update\":2}");
    cut_metrics(folder / "m", 6);
    EXPECT_EQ(folder.read("m"), "{\"update\":1}\n");
}

}  // namespace
}  // namespace hetseq
