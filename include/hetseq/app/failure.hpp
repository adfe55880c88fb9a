#pragma once

#include <exception>

namespace hetseq {

class HostComm;

/// The exit code of `error`: its own, or that of an internal error.
int exit_code_of(const std::exception& error);

/// Prints `error` with this rank's name.
void print_error(const std::exception& error);

/// How ranks end after an error: one that all of them share is printed once and its exit code
/// returned, so that all leave in order; one of this rank's own is printed and ends the whole job.
/// `meeting` serves nothing else, so that ranks stuck in another collective do not disturb it.
/// Called while the objects of the job still live: destroying them could wait for ranks that do not
/// come.
int end_ranks(const HostComm& meeting, const std::exception& error);

}  // namespace hetseq
