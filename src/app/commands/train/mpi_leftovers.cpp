#include "mpi_leftovers.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/mpi_leftovers.hpp"

namespace hetseq {

void clear_mpi_leftovers() {
    const char* const local_rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    if (local_rank != nullptr && std::string(local_rank) != "0")
        return;
    constexpr double bytes_of_mib = 1 << 20;
    const MpiLeftovers removed = remove_mpi_leftovers();
    if (removed.segments + removed.sessions == 0)
        return;
    const auto count = [](std::size_t number, const char* what) {
        return count_text(static_cast<std::int64_t>(number), what);
    };
    log::here(log::Level::info,
              "removed what killed jobs had left on this host: " +
                  count(removed.segments, "shared-memory segment") + " of " +
                  format_number(static_cast<double>(removed.bytes) / bytes_of_mib, 3) +
                  " MiB and " + count(removed.sessions, "session folder") + " of Open MPI");
}

}  // namespace hetseq
