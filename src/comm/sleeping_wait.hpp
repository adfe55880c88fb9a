#pragma once

#include <mpi.h>

namespace hetseq {

/// Tests `request` and sleeps until it is complete.
void sleeping_wait(MPI_Request& request);

/// `start(&request)` begins a non-blocking MPI operation; waits for it, sleeping.
template <class Start>
void run_sleeping(Start&& start) {
    MPI_Request request = MPI_REQUEST_NULL;
    start(&request);
    sleeping_wait(request);
}

}  // namespace hetseq
