#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hetseq {

/// All bytes of a small file; nothing where it cannot be opened. Throws BadData
/// where it is no file.
std::optional<std::string> read_file_text(const std::filesystem::path& path);

/// The same of a text that may be a stream which a shell names, such as `<(command)`.
std::optional<std::string> read_text_once(const std::filesystem::path& path);

}  // namespace hetseq
