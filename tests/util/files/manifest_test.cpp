#include "hetseq/util/files/manifest.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(ManifestTest, IsReadAsItWasWritten) {
    const TemporaryFolder folder;
    Manifest manifest;
    manifest.files["a"] = write_atomically(folder / "a", "one");
    manifest.files["b"] = write_atomically(folder / "b", "");
    folder.write(Manifest::file_name, manifest_json(manifest));

    const Manifest read = read_manifest(folder.path());

    EXPECT_EQ(read.files, manifest.files);
    for (const auto& [name, digest] : read.files)
        EXPECT_NO_THROW(verify_file(folder.path(), name, digest));
}

TEST(ManifestTest, EveryDamageOfAFileIsNamed) {
    const TemporaryFolder folder;
    const FileDigest digest = write_atomically(folder / "a", "content");
    const auto verify = [&] { verify_file(folder.path(), "a", digest); };

    folder.write("a", "conten");
    EXPECT_THAT(error_of(verify), HasSubstr("a has 6 bytes (its manifest says 7)"));
    folder.write("a", "contenT");
    EXPECT_THAT(error_of(verify), HasSubstr("a is damaged (its checksum is"));
    std::filesystem::remove(folder / "a");
    EXPECT_THAT(error_of(verify), HasSubstr("there is no file"));
}

TEST(ManifestTest, WhatIsNoneIsRefused) {
    const auto parse = [](const std::string& text) {
        return error_of([&] { parse_manifest(text, "M"); });
    };
    EXPECT_THAT(parse(""), HasSubstr("M is not a manifest"));
    EXPECT_THAT(parse("[]"), HasSubstr("M is not a manifest"));
    EXPECT_THAT(parse(R"({"format":2,"files":{}})"), HasSubstr("its format is 2"));
    for (const char* number : {"1.5", "1e300", "true", "4294967297"})
        EXPECT_THAT(parse(R"({"format":)" + std::string(number) + R"(,"files":{}})"),
                    HasSubstr("is not a whole number"));
    EXPECT_THAT(parse(R"({"format":1,"files":{"../a":{"bytes":1,"xxh64":"0000000000000000"}}})"),
                HasSubstr("not the name of a file"));
    EXPECT_THAT(parse(R"({"format":1,"files":{"a":{"bytes":-1,"xxh64":"0000000000000000"}}})"),
                HasSubstr("has no size"));
    EXPECT_THAT(parse(R"({"format":1,"files":{"a":{"bytes":1,"xxh64":"0"}}})"),
                HasSubstr("not a checksum"));
}

TEST(ManifestTest, DeeplyNestedJsonIsBadData) {
    const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');

    EXPECT_THAT(error_of([&] {
                    parse_manifest(R"({"a":)" + deep + R"(,"b":1,"files":{},"format":1.5})", "M");
                }),
                HasSubstr("M is not a manifest"));
}

TEST(ManifestTest, AFolderWithoutOneIsNotComplete) {
    const TemporaryFolder folder;
    EXPECT_THAT(error_of([&] { read_manifest(folder.path()); }), HasSubstr("not complete"));
}

}  // namespace
}  // namespace hetseq
