#include "hetseq/util/files/safetensors.hpp"

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using test::TemporaryFolder;

std::string with_length(const std::string& header, const std::string& data = {}) {
    const std::uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return file + header + data;
}

std::vector<char> contents(SafetensorsReader& reader, const SafetensorEntry& entry) {
    std::vector<char> bytes(entry.bytes());
    reader.read(entry, bytes.data());
    return bytes;
}

TEST(SafetensorsTest, WhatIsWrittenIsRead) {
    const TemporaryFolder folder;
    const float matrix[6] = {0, 1, 2, 3, 4, 5};
    const std::int64_t scalar = 42;
    const SafetensorData tensors[] = {
        {"matrix", SafetensorType::F32, {2, 3}, matrix},
        {"scalar", SafetensorType::I64, {}, &scalar},
        {"empty", SafetensorType::F32, {0, 7}, nullptr},
    };
    write_safetensors(folder / "a.safetensors", tensors, {{"format", "pt"}});

    SafetensorsReader reader{folder / "a.safetensors"};

    EXPECT_EQ(reader.metadata().at("format"), "pt");
    ASSERT_EQ(reader.entries().size(), 3u);
    const SafetensorEntry* read = reader.find("matrix");
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->type, SafetensorType::F32);
    EXPECT_EQ(read->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(std::memcmp(contents(reader, *read).data(), matrix, sizeof matrix), 0);
    EXPECT_EQ(std::memcmp(contents(reader, *reader.find("scalar")).data(), &scalar, 8), 0);
    EXPECT_EQ(reader.find("empty")->bytes(), 0u);
    EXPECT_EQ(reader.find("absent"), nullptr);
}

// Their offsets are those where the next tensor begins, whatever their names.
TEST(SafetensorsTest, TensorsWithoutElementsLieAnywhere) {
    const TemporaryFolder folder;
    const float values[2] = {1, 2};
    const SafetensorData tensors[] = {
        {"a", SafetensorType::F32, {1}, values},
        {"z", SafetensorType::F32, {0}, nullptr},
        {"b", SafetensorType::F32, {2}, values},
    };

    write_safetensors(folder / "a.safetensors", tensors);

    EXPECT_EQ(SafetensorsReader{folder / "a.safetensors"}.entries().size(), 3u);
}

// Quoted whole, such a value would take the stack.
TEST(SafetensorsTest, DeeplyNestedJsonIsBadData) {
    const TemporaryFolder folder;
    const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
    folder.write(
        "a",
        with_length(R"({"a":{"dtype":"F32","shape":[)" + deep + R"(],"data_offsets":[0,4]}})"));

    EXPECT_THROW(SafetensorsReader{folder / "a"}, BadData);
}

TEST(SafetensorsTest, EveryTensorIsAligned) {
    const TemporaryFolder folder;
    const std::vector<char> zeros(64);
    const SafetensorData tensors[] = {
        {"bytes", SafetensorType::U8, {3}, zeros.data()},
        {"half", SafetensorType::F16, {3}, zeros.data()},
        {"wide", SafetensorType::F64, {3}, zeros.data()},
    };

    write_safetensors(folder / "a.safetensors", tensors);

    const SafetensorsReader reader{folder / "a.safetensors"};
    for (const SafetensorEntry& entry : reader.entries())
        EXPECT_EQ(entry.begin % size_of(entry.type), 0u) << entry.name;
}

TEST(SafetensorsTest, TensorsAreOrderedByWidthAndThenStay) {
    const SafetensorType types[] = {SafetensorType::U8,
                                    SafetensorType::F32,
                                    SafetensorType::I64,
                                    SafetensorType::I32,
                                    SafetensorType::BOOL};

    EXPECT_EQ(safetensors_order(types), (std::vector<std::size_t>{2, 1, 3, 0, 4}));
}

std::string bytes_of_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SafetensorsTest, BytesThatComeInPiecesGiveTheSameFile) {
    const TemporaryFolder folder;
    const std::string narrow = "abc", wide = "0123456789ABCDEF";
    const SafetensorData tensors[] = {
        {"narrow", SafetensorType::U8, {3}, narrow.data()},
        {"empty", SafetensorType::F32, {0}, nullptr},
        {"wide", SafetensorType::I64, {1, 2}, wide.data()},
    };
    const FileDigest whole = write_safetensors(folder / "whole", tensors, {{"format", "pt"}});
    SafetensorsWriter writer(folder / "pieces",
                             {{.name = "narrow", .type = SafetensorType::U8, .shape = {3}},
                              {.name = "empty", .type = SafetensorType::F32, .shape = {0}},
                              {.name = "wide", .type = SafetensorType::I64, .shape = {1, 2}}},
                             {{"format", "pt"}});

    for (const char byte : wide + narrow)
        writer.write(&byte, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "pieces"));
    const FileDigest pieces = writer.finish();

    EXPECT_EQ(writer.entries().front().name, "wide");
    EXPECT_EQ(pieces, whole);
    EXPECT_EQ(bytes_of_file(folder / "pieces"), bytes_of_file(folder / "whole"));
}

TEST(SafetensorsTest, AFileThatLacksBytesIsNotFinished) {
    const TemporaryFolder folder;
    SafetensorsWriter writer(folder / "a",
                             {{.name = "a", .type = SafetensorType::U8, .shape = {3}}});
    writer.write("ab", 2);

    EXPECT_THROW(writer.finish(), InternalError);
    EXPECT_THROW(writer.write("cd", 2), InternalError);
}

TEST(SafetensorsTest, APartOfATensorIsRead) {
    const TemporaryFolder folder;
    const SafetensorData tensors[] = {{"before", SafetensorType::U8, {2}, "xy"},
                                      {"cut", SafetensorType::U8, {5}, "01234"}};
    write_safetensors(folder / "a", tensors);
    SafetensorsReader reader{folder / "a"};
    std::string part(3, '-');

    reader.read(*reader.find("cut"), 1, 3, part.data());
    EXPECT_EQ(part, "123");
    reader.read(*reader.find("cut"), 5, 0, part.data());
    EXPECT_EQ(part, "123");
    EXPECT_THROW(reader.read(*reader.find("cut"), 3, 3, part.data()), InternalError);
}

// The example of the format's description: {"test":{"dtype":"I32","shape":[2,2],...}}, padded.
TEST(SafetensorsTest, ReadsAFileByteForByteAsDescribed) {
    const TemporaryFolder folder;
    folder.write("a",
                 with_length(R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})"
                             "     ",
                             std::string(16, '\1')));

    SafetensorsReader reader{folder / "a"};

    EXPECT_EQ(contents(reader, *reader.find("test")), std::vector<char>(16, '\1'));
}

struct Malformed {
    std::string file;
    std::string expected;  // part of the message
};

std::string entry(const std::string& description, const std::string& data = {}) {
    return with_length("{\"a\":" + description + "}", data);
}

TEST(SafetensorsTest, MalformedFilesAreBadDataThatNamesTheFile) {
    const std::string four(4, '\0'), eight(8, '\0');
    const Malformed cases[] = {
        {"", "length is 0"},
        {"1234567", "length is 7"},
        {with_length("{}").substr(0, 9), "header of 2 bytes"},
        {std::string(8, '\xFF'), "header of 18446744073709551615 bytes"},
        {with_length(""), "not JSON"},
        {with_length("{"), "not JSON"},
        {with_length("[]"), "not a JSON object"},
        {with_length("{\"\xFF\":1}"), "not JSON"},
        {with_length("{}", "x"), "describes 0 bytes"},
        {with_length(R"({"__metadata__":[]})"), "__metadata__"},
        {with_length(R"({"__metadata__":{"a":1}})"), "'a' is not a string"},
        {entry("1"), "not described by"},
        {entry(R"({"dtype":"F32","shape":[1]})"), "not described by"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})", four),
         "not described by"},
        {entry(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})", four), "unknown dtype"},
        {entry(R"({"dtype":5,"shape":[1],"data_offsets":[0,4]})", four), "unknown dtype"},
        {entry(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", four), "shape is not an array"},
        {entry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", four), "shape holds -1"},
        {entry(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", four), "shape holds 1.0"},
        {entry(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", four),
         "shape holds"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":{}})", four), "not an array"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", four), "does not have two"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,"4"]})", four),
         "data_offsets holds"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", four), "needs 4 bytes"},
        {entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", four), "needs 8 bytes"},
        {entry(R"({"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,4]})", four),
         "too large"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", eight), "begins at byte 4"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", ""), "describes 4 bytes"},
        {entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", eight), "the file has 8"},
        {with_length(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                     four),
         "begins at byte 0"},
        {with_length(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                     R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                     eight),
         "'a' twice"},
    };
    const TemporaryFolder folder;
    for (const auto& [file, expected] : cases) {
        folder.write("bad.safetensors", file);
        try {
            SafetensorsReader{folder / "bad.safetensors"};
            ADD_FAILURE() << expected << ": accepted";
        } catch (const BadData& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find("bad.safetensors"), std::string::npos) << message;
            EXPECT_NE(message.find(expected), std::string::npos) << message;
        }
    }
}

TEST(SafetensorsTest, AFileCutAtAnyByteIsRefused) {
    const TemporaryFolder folder;
    const float value = 1;
    const SafetensorData tensors[] = {{"a", SafetensorType::F32, {1}, &value}};
    write_safetensors(folder / "whole", tensors);
    const std::string whole = folder.read("whole");

    for (std::size_t length = 0; length < whole.size(); ++length) {
        folder.write("cut", whole.substr(0, length));
        EXPECT_THROW(SafetensorsReader{folder / "cut"}, BadData) << length;
    }
}

TEST(SafetensorsTest, AnAbsentFileIsMissingInput) {
    const TemporaryFolder folder;

    EXPECT_THROW(SafetensorsReader{folder / "absent"}, MissingInput);
}

// Each would take minutes, and gigabytes.
TEST(SafetensorsTest, HeadersOfAnyLengthAreLimited) {
    const TemporaryFolder folder;
    std::string many = "{";
    for (int i = 0; i <= 100'000; ++i)
        many += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
                R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    folder.write("many", with_length(many + "}"));
    folder.write("deep", with_length(R"({"a":)" + std::string(1'000'000, '[') + "}"));

    const auto message = [&](const char* name) -> std::string {
        try {
            SafetensorsReader{folder / name};
        } catch (const BadData& error) {
            return error.what();
        }
        return "";
    };

    EXPECT_NE(message("many").find("the limit is 100000 tensors in a file"), std::string::npos);
    EXPECT_NE(message("deep").find("nested deeper"), std::string::npos) << message("deep");
}

}  // namespace
}  // namespace hetseq
