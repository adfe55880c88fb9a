#pragma once

#include <mpi.h>

namespace hetseq::detail {

/// Throws CommError with MPI's text for `code` and the place of `call`.
[[noreturn]] void throw_mpi_error(const char* call, int code, const char* file, int line);

}  // namespace hetseq::detail

/// Runs an MPI call; a failure becomes a CommError.
#define MPI_TRY(call)                                                                   \
    do {                                                                                \
        const int mpi_try_code = (call);                                                \
        if (mpi_try_code != MPI_SUCCESS)                                                \
            ::hetseq::detail::throw_mpi_error(#call, mpi_try_code, __FILE__, __LINE__); \
    } while (false)
