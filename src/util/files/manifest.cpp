#include "hetseq/util/files/manifest.hpp"

#include <charconv>
#include <cstdint>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;  // written
// For reading. Objects of the ordered kind copy all that they hold, however deeply nested, as they
// grow.
using ReadJson = nlohmann::json;

std::uint64_t parse_checksum(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size() || checksum_text(value) != text)
        throw BadData("'" + text + "' is not a checksum of 16 hexadecimal digits");
    return value;
}

void check_name(const std::string& name) {
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
        throw BadData("'" + name + "' is not the name of a file in the folder");
}

// Throws the library's exceptions and BadData.
Manifest from_json(const ReadJson& json) {
    const std::int64_t format = json_integer(json.at("format"), 0, 1'000'000);
    if (format != Manifest::format)
        throw BadData("its format is " + std::to_string(format) + ", this program reads " +
                      std::to_string(Manifest::format));
    Manifest manifest;
    for (const auto& [name, file] : json.at("files").items()) {
        check_name(name);
        if (!file.at("bytes").is_number_unsigned())
            throw BadData("'" + name + "' has no size");
        manifest.files[name] = {file.at("bytes").get<std::uint64_t>(),
                                parse_checksum(file.at("xxh64").get<std::string>())};
    }
    return manifest;
}

}  // namespace

std::string manifest_json(const Manifest& manifest) {
    Json json{{"format", Manifest::format}, {"files", Json::object()}};
    for (const auto& [name, digest] : manifest.files)
        json["files"][name] = {{"bytes", digest.bytes}, {"xxh64", checksum_text(digest.xxh64)}};
    return json_text(json, 2) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
    try {
        return from_json(parse_json<ReadJson>(text));
    } catch (const std::exception& error) {
        throw BadData(path.string() + " is not a manifest", error.what());
    }
}

Manifest read_manifest(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / Manifest::file_name;
    const std::optional<std::string> text = read_file_text(path);
    if (!text)
        throw MissingInput("cannot read " + path.string(), "its folder is not complete");
    return parse_manifest(*text, path);
}

void verify_length(const std::filesystem::path& folder,
                   const std::string& name,
                   const FileDigest& expected) {
    const std::filesystem::path path = folder / name;
    require_regular_file(path);
    const std::uint64_t bytes = std::filesystem::file_size(path);
    if (bytes != expected.bytes)
        throw BadData(path.string() + " has " + std::to_string(bytes) + " bytes",
                      "its manifest says " + std::to_string(expected.bytes));
}

void verify_file(const std::filesystem::path& folder,
                 const std::string& name,
                 const FileDigest& expected) {
    verify_length(folder, name, expected);
    const FileDigest found = digest_of(folder / name);
    if (found.xxh64 != expected.xxh64)
        throw BadData((folder / name).string() + " is damaged",
                      "its checksum is " + checksum_text(found.xxh64) + ", its manifest says " +
                          checksum_text(expected.xxh64));
}

}  // namespace hetseq
