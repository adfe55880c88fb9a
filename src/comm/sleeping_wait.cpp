#include "sleeping_wait.hpp"

#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "backoff.hpp"

namespace hetseq {

void sleeping_wait(MPI_Request& request) {
    const activity::Waiting waiting;
    Backoff backoff{Backoff::Options{}};
    for (int complete = 0; complete == 0;) {
        MPI_TRY(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
        if (complete == 0)
            backoff.pause();
    }
}

}  // namespace hetseq
