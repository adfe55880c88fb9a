#include "hetseq/util/event_file.hpp"

#include <csignal>
#include <fstream>
#include <limits>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

constexpr double wall_time = 1700000000.25;

// The bytes that tests/reference/event_file.py writes.
std::string reference_bytes() {
    std::ifstream file("tests/reference/event_file.json");
    const auto hex = nlohmann::json::parse(file).at("hex").get<std::string>();
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
}

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A file with a scalar at each of `steps`; its name in `folder`.
std::string write_steps(const TemporaryFolder& folder, std::initializer_list<std::int64_t> steps) {
    EventFile file(folder.path(), *steps.begin(), wall_time);
    for (const std::int64_t step : steps)
        file.add_scalar("loss", step, 0.5, wall_time);
    file.flush();
    return file.path().filename().string();
}

TEST(EventFileTest, WritesTheBytesOfTensorBoardsOwnWriter) {
    const TemporaryFolder folder;
    EventFile file(folder / "tensorboard", 3, wall_time);
    file.add_scalar("train/loss", 3, 0.625, wall_time);
    file.add_scalar("train/grad_norm", 300, std::numeric_limits<double>::infinity(), wall_time);
    file.add_scalar("valid/accuracy", std::int64_t{1} << 40, -0.1, wall_time);

    file.flush();

    EXPECT_EQ(read(file.path()), reference_bytes());
    EXPECT_THAT(file.path().filename().string(), HasSubstr("events.out.tfevents.1700000000."));
}

TEST(EventFileTest, EachHasAFileOfItsOwn) {
    const TemporaryFolder folder;

    write_steps(folder, {1});
    write_steps(folder, {2});

    EXPECT_EQ(folder.size(), 2);
}

TEST(EventFileTest, AFolderThatCannotBeMadeIsNamedAndALaterFlushGoesOn) {
    const TemporaryFolder folder;
    folder.write("tensorboard", "a file");
    EventFile file(folder / "tensorboard", 1, wall_time);
    try {
        file.flush();
        FAIL() << "opened";
    } catch (const IoError& error) {
        EXPECT_THAT(error.what(), HasSubstr("tensorboard"));
    }

    std::filesystem::remove(folder / "tensorboard");
    file.flush();

    EXPECT_GT(std::filesystem::file_size(file.path()), 0U);
}

// A limit on the size of files stands in for a full disk.
TEST(EventFileTest, AFullDiskLeavesWholeRecordsAndALaterFlushGoesOn) {
    const TemporaryFolder folder;
    EventFile file(folder.path(), 1, wall_time);
    file.add_scalar("loss", 1, 0.5, wall_time);
    file.flush();
    const auto whole = std::filesystem::file_size(file.path());
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit former{};
    getrlimit(RLIMIT_FSIZE, &former);
    const rlimit limit{whole + 10, former.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    file.add_scalar("loss", 2, 0.25, wall_time);

    EXPECT_THROW(file.flush(), IoError);
    EXPECT_EQ(std::filesystem::file_size(file.path()), whole);

    setrlimit(RLIMIT_FSIZE, &former);
    file.flush();
    const auto record = std::filesystem::file_size(file.path()) - whole;
    const std::string bytes = read(file.path());
    EXPECT_EQ(bytes.substr(whole, 8), bytes.substr(whole - record, 8));  // the records' lengths
}

TEST(CutEventsTest, KeepsWhatIsNotLaterThanTheStep) {
    const TemporaryFolder folder, expected;
    const std::string name = write_steps(folder, {1, 2, 3, 4});
    const std::string shorter = write_steps(expected, {1, 2, 3});

    cut_events(folder.path(), 3);

    EXPECT_EQ(folder.read(name), expected.read(shorter));
}

TEST(CutEventsTest, StepsMayComeInAnyOrder) {
    const TemporaryFolder folder, expected;
    const std::string name = write_steps(folder, {1, 9, 2, 8, 3});
    const std::string shorter = write_steps(expected, {1, 2, 3});

    cut_events(folder.path(), 7);

    EXPECT_EQ(folder.read(name), expected.read(shorter));
}

TEST(CutEventsTest, RemovesAFileOfWhichNothingStaysAndLeavesOthersAlone) {
    const TemporaryFolder folder;
    const std::string name = write_steps(folder, {1, 2});
    folder.write("notes.txt", "mine");

    cut_events(folder.path(), -1);

    EXPECT_FALSE(std::filesystem::exists(folder / name));
    EXPECT_EQ(folder.read("notes.txt"), "mine");
}

TEST(CutEventsTest, WithoutAFolderNothingIsDone) {
    const TemporaryFolder folder;

    EXPECT_NO_THROW(cut_events(folder / "tensorboard", 3));
}

TEST(CutEventsTest, AFileTruncatedAnywhereKeepsItsCompleteRecords) {
    const TemporaryFolder folder;
    const std::string name = write_steps(folder, {1, 2});
    const std::string whole = folder.read(name);
    const std::size_t record = whole.size() - folder.read(write_steps(folder, {1})).size();
    std::size_t kept_most = 0;
    for (std::size_t length = 0; length < whole.size(); ++length) {
        folder.write(name, whole.substr(0, length));

        cut_events(folder.path(), 2);

        const std::string kept =
            std::filesystem::exists(folder / name) ? folder.read(name) : std::string();
        EXPECT_EQ(kept, whole.substr(0, kept.size())) << length;
        EXPECT_LE(kept.size(), length);
        EXPECT_GE(kept.size(), kept_most) << length;
        kept_most = kept.size();
    }
    EXPECT_EQ(kept_most, whole.size() - record);
}

TEST(CutEventsTest, ADamagedRecordEndsTheFile) {
    const TemporaryFolder folder, expected;
    const std::string name = write_steps(folder, {1, 2, 3});
    const std::string shorter = write_steps(expected, {1, 2});
    const std::size_t good = expected.read(shorter).size();
    const std::string whole = folder.read(name);
    for (std::size_t at = good; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        folder.write(name, damaged);

        cut_events(folder.path(), 3);

        EXPECT_EQ(folder.read(name), whole.substr(0, good)) << at;
    }
}

TEST(CutEventsTest, AFileThatIsNoneIsNamed) {
    // TensorBoard's writer gave these records: of "hello", and of an event without a version.
    const std::string of_text(
        "\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3e"
        "hello"
        "\xbb\x1f\x1c\x19",
        21);
    const std::string of_no_version(
        "\x09\0\0\0\0\0\0\0\x37\xf9\x71\x39"
        "\x09\0\0\0\0\0\0\0\0"
        "\x28\xda\x7c\x3b",
        25);
    for (const std::string& content :
         {std::string("kind,update,loss\n1,2,3\n"), of_text, of_no_version}) {
        const TemporaryFolder folder;
        folder.write("a.tfevents", content);
        try {
            cut_events(folder.path(), 3);
            FAIL() << "taken: " << content;
        } catch (const BadData& error) {
            EXPECT_THAT(error.what(), HasSubstr("a.tfevents is not an event file"));
        }
        EXPECT_EQ(folder.read("a.tfevents"), content);
    }
}

}  // namespace
}  // namespace hetseq
