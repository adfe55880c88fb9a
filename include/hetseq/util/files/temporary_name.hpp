#pragma once

#include <filesystem>
#include <string>

namespace hetseq {

/// 16 hexadecimal digits that no other process on any host has drawn.
std::string random_digits();

/// The temporary name of a file that is to appear as `path`, in the same folder. Another one at
/// each call: processes of different hosts, or of containers that number theirs alike, may write
/// the same file on a file system that they share.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

/// Whether `name` (without a folder) is a temporary name of the file `of`.
bool is_temporary_name(const std::string& name, const std::string& of);

}  // namespace hetseq
