#pragma once

namespace hetseq {

/// To be called first in `main`. Connects standard input, output and error to /dev/null if they
/// were closed at the start. Otherwise a file that is opened later would take their place, and
/// output would go into it.
void keep_standard_streams();

/// To be called at the end. Throws IoError if output to standard output did not arrive. A reader
/// that left on purpose is not an error.
void check_standard_output();

}  // namespace hetseq
