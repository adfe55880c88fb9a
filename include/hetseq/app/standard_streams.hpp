#pragma once

namespace hetseq {

/// First in `main`: standard input, output and error that were closed at the start lead to
/// /dev/null, so that no file opened later takes their place and is printed into.
void keep_standard_streams();

/// At the end: throws IoError when what was printed to standard output did not get there. A reader
/// that left on purpose is not an error.
void check_standard_output();

}  // namespace hetseq
