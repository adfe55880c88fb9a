#pragma once

#include <exception>
#include <functional>

namespace hetseq {

/// The exit code of `error`: its own, or that of an internal error.
int exit_code_of(const std::exception& error);

/// Prints `error` in a process that is not a rank of a job.
void print_error(const std::exception& error);

/// Runs what a program is for, which returns an exit code, and sees to it that its output arrives.
/// Prints an error that it throws, and returns that error's code; `reader_left_code` for
/// ReaderLeft.
int run_to_exit_code(const std::function<int()>& work);

}  // namespace hetseq
