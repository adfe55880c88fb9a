// The messages of NCCL's stand-in. Each wait ends early when the communicator is aborted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace hetseq::stand_in {

/// One rank's way to the others of its communicator.
struct Transport {
    int rank = 0;
    std::vector<int> world_ranks;  // of the communicator's ranks, in MPI_COMM_WORLD
    int tags = 0;                  // the first of this communicator's
    std::atomic<bool> aborted{false};

    int size() const { return static_cast<int>(world_ranks.size()); }
};

/// What ncclUniqueId carries.
struct Invitation {
    int root = 0;  // rank in MPI_COMM_WORLD
    int number = 0;
};
Invitation make_invitation();

/// What a rank brings to a communicator.
struct Member {
    int rank = 0;
    int version = 0;  // of NCCL
    int gpu = 0;
};

/// Learns the others' ranks. `check`, on the root alone, gets what all bring. False:
/// aborted.
bool bootstrap(Transport& transport,
               const Invitation& invitation,
               const Member& mine,
               int size,
               const std::function<void(const std::vector<Member>&)>& check);

/// Whether `asked` is the same on all ranks. Nothing: aborted.
std::optional<bool> all_alike(Transport& transport, int sequence, std::uint64_t asked);

/// `combine(sum, part)` adds a rank's values; ranks follow one another in order. False: aborted.
bool reduce_to_all(Transport& transport,
                   int sequence,
                   const void* from,
                   void* to,
                   std::size_t bytes,
                   const std::function<void(void* sum, const void* part)>& combine);
bool broadcast(Transport& transport, int sequence, void* values, std::size_t bytes, int root);

}  // namespace hetseq::stand_in
