#include "peer_relation.hpp"

#include <cstdint>
#include <string>

#include "hetseq/util/error.hpp"

namespace hetseq {

void check_thread_support(const HostComm& world, ThreadSupport threads) {
    const std::int64_t is_enough = threads == ThreadSupport::multiple ? 1 : 0;
    if (world.all_reduce(is_enough, ReduceOp::min) == 0)
        throw CommError("stages of a pipeline cannot send each other tensors",
                        "MPI gave a rank less than MPI_THREAD_MULTIPLE, this one " +
                            std::string(to_string(threads)),
                        "use an MPI with MPI_THREAD_MULTIPLE");
}

// Where one rank waits for another that does not know it, it would wait for ever.
void check_peers(const HostComm& world, const std::vector<int>& peers) {
    const auto size = static_cast<std::size_t>(world.size());
    const auto rank = static_cast<std::size_t>(world.rank());
    std::string own(size, '-');
    for (const int peer : peers)
        own[peer >= 0 && peer < world.size() ? static_cast<std::size_t>(peer) : rank] = '+';
    const std::vector<std::string> all = world.all_gather(own);
    for (std::size_t a = 0; a < size; ++a) {
        HETSEQ_ASSERT(all[a][a] == '-');
        for (std::size_t b = 0; b < a; ++b)
            HETSEQ_ASSERT(all[a][b] == all[b][a]);
    }
}

}  // namespace hetseq
