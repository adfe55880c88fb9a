#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "hetseq/util/files/checksum.hpp"

namespace hetseq {

/// The files of a folder by name (no path), with their sizes and checksums. MANIFEST.json is
/// written last, so a folder that has one is complete.
struct Manifest {
    static constexpr int format = 1;
    static constexpr const char* file_name = "MANIFEST.json";

    std::map<std::string, FileDigest> files;
};

std::string manifest_json(const Manifest& manifest);
/// `path` is named in errors. Throws BadData: no manifest, another format, a name with a path.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& path);

/// Reads the manifest of `folder`. Throws MissingInput or BadData.
Manifest read_manifest(const std::filesystem::path& folder);
/// Whether the file `name` of `folder` is there and as long as it should be. Throws BadData or
/// MissingInput.
void verify_length(const std::filesystem::path& folder,
                   const std::string& name,
                   const FileDigest& expected);
/// Reads the file `name` of `folder`. Throws BadData that says how the file differs from the
/// manifest, MissingInput or IoError.
void verify_file(const std::filesystem::path& folder,
                 const std::string& name,
                 const FileDigest& expected);

}  // namespace hetseq
