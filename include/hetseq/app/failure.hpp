#pragma once

#include <exception>
#include <utility>

namespace hetseq {

class HostComm;

/// How ranks end after an error. An error that all of them met at the same place is printed once,
/// and its exit code is returned, so that all leave in order. Any other error is printed and ends
/// the whole job. A line under the message gives the program, version, rank and host, and what the
/// rank was doing. `meeting` is used for nothing else, so ranks that are stuck in another
/// collective do not disturb it. Call this while the objects of the job still exist: destroying
/// them could wait for ranks that do not come.
int end_ranks(const HostComm& meeting, const std::exception& error);

/// Runs `work`, which uses objects of the job that outlive this call, and returns 0 or how
/// `end_ranks` ended it.
template <class Work>
int run_or_end(const HostComm& meeting, Work&& work) {
    try {
        std::forward<Work>(work)();
        return 0;
    } catch (const std::exception& error) {
        return end_ranks(meeting, error);
    }
}

}  // namespace hetseq
