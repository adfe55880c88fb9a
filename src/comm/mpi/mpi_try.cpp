#include "hetseq/comm/mpi/mpi_try.hpp"

#include <string>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

void throw_mpi_error(const char* call, int code, const char* file, int line) {
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, reason, &length);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    const bool lacks_memory = error_class == MPI_ERR_NO_MEM;
    const std::string text{call};
    throw CommError(text.substr(0, text.find('(')) + " failed",
                    std::string(reason) + ", " + file + ":" + std::to_string(line),
                    lacks_memory
                        ? more_memory_advice()
                        : "look above for the rank that ended first, and check the network");
}

}  // namespace hetseq::detail
