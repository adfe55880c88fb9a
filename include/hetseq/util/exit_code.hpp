#pragma once

#include <exception>

namespace hetseq {

/// The exit code of `error`: its own, or that of an internal error.
int exit_code_of(const std::exception& error);

/// Prints `error` in a process that is not a rank of a job.
void print_error(const std::exception& error);

}  // namespace hetseq
