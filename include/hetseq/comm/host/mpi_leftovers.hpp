#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace hetseq {

/// Where Open MPI keeps what its processes of this user share on this host.
struct MpiPlaces {
    std::string host;  // as it stands in names of segments: without a domain
    std::filesystem::path segments = "/dev/shm";
    std::filesystem::path sessions;  // one folder for each mpirun, or daemon, by its process
    std::filesystem::path processes = "/proc";
    bool are_all_processes_seen = false;  // not so in a container that counts its own
    double least_age_s = 60;  // of what is removed: a job that starts has not mapped all yet

    /// The real ones.
    MpiPlaces();
};

struct MpiLeftovers {
    std::size_t segments = 0, sessions = 0;
    std::uintmax_t bytes = 0;  // of the segments, which are memory
};

/// Removes what killed processes of this user left behind: shared-memory segments that no process
/// of this user maps, and session folders of processes that are gone, here and in containers. What
/// cannot be read or removed stays. So do all segments where a process of the user cannot be looked
/// into, and all session folders in a container that sees only its own processes: it may share
/// /tmp with others.
MpiLeftovers remove_mpi_leftovers(const MpiPlaces& places = {}) noexcept;

}  // namespace hetseq
