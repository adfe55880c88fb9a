#include "hetseq/util/files/event_file.hpp"

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

    EventFile(folder.path(), 1, wall_time).flush();
    EventFile(folder.path(), 2, wall_time).flush();

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

}  // namespace
}  // namespace hetseq
