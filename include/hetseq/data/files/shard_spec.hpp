#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// The files that `spec` names, in name order: a file, a folder (its *.h5 and *.hdf5), a glob, or
/// several of them separated by commas. Throws MissingInput if one of them matches nothing, and
/// BadConfig if a file is named twice.
std::vector<std::string> expand_shard_spec(const std::string& spec);

/// Tells one version of a file from another.
struct FileStamp {
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;  // since 1970
    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Throws MissingInput, with `what_to_do`, or IoError where this process cannot read `path`.
FileStamp stamp_readable_file(const std::string& path,
                              const std::string& what_to_do = "check --data and --valid-data");

/// Throws BadData if the file at `path` has changed since `stamp` was taken.
void check_unchanged(const std::string& path, const FileStamp& stamp);

}  // namespace hetseq
