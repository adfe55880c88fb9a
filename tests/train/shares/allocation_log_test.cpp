#include "hetseq/train/shares/allocation_log.hpp"

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
