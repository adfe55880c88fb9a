#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// The file that stands in a folder while its shards are replaced.
constexpr const char* unfinished_preparation = "prepare.unfinished";

/// The files that `spec` names, in name order: a file, a folder (its *.h5 and *.hdf5), a glob, or
/// several of them separated by commas. A name that exists is taken as it is, otherwise a backslash
/// makes a comma, a bracket, * or ? part of a name (`split_names`). Throws MissingInput if one of
/// them matches nothing, BadConfig if a file is named twice, and BadData if the shards of a folder
/// are being replaced.
std::vector<std::string> expand_shard_spec(const std::string& spec);

/// A file, and the place of the name in `spec` that names it.
struct NamedFile {
    std::string path;
    std::int64_t name = 0;
    friend auto operator<=>(const NamedFile&, const NamedFile&) = default;
};

/// The same files in the same order, with their names. Throws as `expand_shard_spec` does.
std::vector<NamedFile> expand_shard_names(const std::string& spec);

/// Tells one version of a file from another.
struct FileStamp {
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;  // since 1970
    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Names in `spec` as `expand_shard_spec` divides them, escaped as there.
std::vector<std::string> names_in_spec(const std::string& spec);

/// Throws MissingInput, with `what_to_do`, or IoError where this process cannot read `path`, and
/// BadData where that is no file.
FileStamp stamp_readable_file(const std::string& path,
                              const std::string& what_to_do = "check --data and --valid-data");

/// Throws BadData if the file at `path` has changed since `stamp` was taken.
void check_unchanged(const std::string& path, const FileStamp& stamp);

}  // namespace hetseq
