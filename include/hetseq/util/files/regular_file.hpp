#pragma once

#include <filesystem>
#include <string>

namespace hetseq {

/// Throws BadData if `path` is there and is a pipe, a device, a socket or a folder: reading it
/// might never end. Call it before the file is opened.
void check_regular_file(const std::filesystem::path& path);

/// The same, and throws MissingInput if it is not there.
void require_regular_file(const std::filesystem::path& path);

/// The same as the first for text that is read once, from its beginning. The streams that a shell
/// names
/// (/dev/stdin and /dev/fd/N, such as `<(command)`) and /dev/null are good too.
void check_text_file(const std::filesystem::path& path);

/// For a command that is to write `path`, and replaces nothing but a file, and that only where it
/// may. Throws BadConfig otherwise: --output names it.
void check_output_file(const std::filesystem::path& path, bool may_replace);

}  // namespace hetseq
