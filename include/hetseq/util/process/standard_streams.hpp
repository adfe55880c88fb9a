#pragma once

#include <string_view>

namespace hetseq {

/// To be called first in `main`. Connects standard input, output and error to /dev/null if they
/// were closed at the start. Otherwise a file that is opened later would take their place, and
/// output would go into it.
void keep_standard_streams();

/// To be called at the end. Throws IoError if output to standard output did not arrive. A reader
/// that left on purpose is not an error: the work is done.
void check_standard_output();

/// Ends a command in the middle of its work, where nobody reads standard output any more, as behind
/// `| head`. It is no error, and so no std::exception: it passes by what reports errors, and
/// `run_program` ends with `reader_left_code`.
struct ReaderLeft {};

/// 128 + SIGPIPE: what a shell reports of a filter that this signal ended.
constexpr int reader_left_code = 141;

/// True where standard output is a pipe or socket that nobody reads any more.
bool has_lost_reader() noexcept;

/// For commands that write as long as they read. Throws ReaderLeft, or IoError where the text
/// cannot be written.
void write_output(std::string_view text);
void flush_output();

}  // namespace hetseq
