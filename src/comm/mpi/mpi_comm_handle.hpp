#pragma once

#include <exception>

#include <mpi.h>

#include "hetseq/util/unique_handle.hpp"

namespace hetseq {

struct MpiCommTraits {
    using type = MPI_Comm;
    static type null() noexcept { return MPI_COMM_NULL; }
    /// MPI makes this collective, so it is left out where other ranks may not take part: while an
    /// exception unwinds, and after MPI has ended.
    static void close(type& comm) noexcept {
        int finalized = 0;
        MPI_Finalized(&finalized);
        if (finalized == 0 && std::uncaught_exceptions() == 0)
            MPI_Comm_free(&comm);
    }
};

using MpiCommHandle = UniqueHandle<MpiCommTraits>;

}  // namespace hetseq
