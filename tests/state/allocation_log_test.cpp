#include "hetseq/state/allocation_log.hpp"

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

namespace fs = std::filesystem;

class AllocationLogTest : public testing::Test {
protected:
    ~AllocationLogTest() override { fs::remove(path_); }

    ExitCode code_of(const std::string& text) const {
        std::ofstream{path_} << text;
        try {
            read_allocations(path_, {4, 4}, 10);
        } catch (const Error& error) {
            return error.code();
        }
        return ExitCode::finished;
    }

    fs::path path_ =
        fs::temp_directory_path() / ("hetseq-allocations-" + std::to_string(getpid()) + ".json");
};

TEST_F(AllocationLogTest, ReadsBackAsItWas) {
    AllocationLog log{path_, {4, 3}};
    log.add(0, {5, 5});
    log.add(12, {7, 3});

    const AllocationsByUpdate expected{{0, {5, 5}}, {12, {7, 3}}};
    const RecordedAllocations recorded = read_allocations(path_, {4, 4}, 10);
    EXPECT_EQ(recorded.by_update, expected);
    EXPECT_EQ(recorded.micro_batches, (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(log.allocations(), expected);
}

std::string text_of(const fs::path& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

TEST_F(AllocationLogTest, AChangeIsAddedToTheFileAndLeavesTheRestAsItIs) {
    AllocationLog log{path_, {4, 3}};
    log.add(0, {5, 5});
    // The name stays with the file that is open: another file would take its place otherwise.
    const fs::path link = path_.string() + ".link";
    fs::create_hard_link(path_, link);
    AllocationsByUpdate expected{{0, {5, 5}}};

    for (std::int64_t update = 1; update < 200; ++update) {
        expected[update] = {5 - update % 2, 5 + update % 2};
        EXPECT_TRUE(log.add(update, expected[update]));
        EXPECT_FALSE(log.add(update, expected[update]));
    }

    EXPECT_EQ(fs::hard_link_count(path_), 2U);
    fs::remove(link);
    EXPECT_EQ(read_allocations(path_, {4, 4}, 10).by_update, expected);
    const std::string appended = text_of(path_);
    AllocationLog{path_, {4, 3}, expected}.add(199, expected[199]);  // as a continued run does
    EXPECT_EQ(text_of(path_), appended);
}

TEST_F(AllocationLogTest, AFileThatWasDamagedMeanwhileIsWrittenAnew) {
    AllocationLog log{path_, {4, 3}};
    const AllocationsByUpdate expected{{0, {5, 5}}, {1, {4, 6}}, {2, {3, 7}}};
    log.add(0, expected.at(0));
    std::ofstream{path_} << "]}";
    log.add(1, expected.at(1));
    fs::remove(path_);
    log.add(2, expected.at(2));

    EXPECT_EQ(read_allocations(path_, {4, 4}, 10).by_update, expected);
}

TEST_F(AllocationLogTest, RefusesWhatItCannotReplay) {
    EXPECT_EQ(code_of(R"({"allocations": [{"update": 1, "units": [5, 5]}]})"), ExitCode::finished);
    EXPECT_EQ(code_of(R"({"micro_batches": [4], "allocations": [{"update": 1, "units": [5, 5]}]})"),
              ExitCode::bad_data);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 0], "allocations": [{"update": 1, "units": [5, 5]}]})"),
        ExitCode::bad_data);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [5, 5]}]})"),
        ExitCode::finished);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [5, 5]})"),
        ExitCode::bad_data);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 2, "units": [5, 5]}]})"),
        ExitCode::bad_data);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [12, -2]}]})"),
        ExitCode::bad_data);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": "all"}]})"),
        ExitCode::bad_data);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [4, 3, 3]}]})"),
        ExitCode::config);
    EXPECT_EQ(
        code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [5, 4]}]})"),
        ExitCode::config);
    for (const char* update : {"0", "1.5", "true", "-9223372036854775808"})
        EXPECT_EQ(code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": )" +
                          std::string(update) + R"(, "units": [5, 5]}]})"),
                  ExitCode::bad_data)
            << update;
    for (const char* units : {"[5.5, 5]",
                              "[1e300, 0]",
                              "[18446744073709551615, 11]",
                              "[9223372036854775807, 9223372036854775807]",
                              "[true, 9]"})
        EXPECT_EQ(code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": )" +
                          std::string(units) + "}]}"),
                  ExitCode::bad_data)
            << units;
    EXPECT_EQ(code_of(R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [5, 5]},)"
                      R"( {"update": 1, "units": [6, 4]}]})"),
              ExitCode::bad_data);
    std::ofstream{path_}
        << R"({"micro_batches": [4, 4], "allocations": [{"update": 1, "units": [5, 5]}]})";
    EXPECT_THROW(read_allocations(path_, {4, 0}, 10), Error);
    fs::remove(path_);
    EXPECT_THROW(read_allocations(path_, {4, 4}, 10), Error);
}

}  // namespace
}  // namespace hetseq
