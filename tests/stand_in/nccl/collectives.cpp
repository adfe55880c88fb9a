// The collectives that NCCL's stand-in knows.
#include <cstring>
#include <string>
#include <vector>

#include "../cuda/runtime.hpp"
#include "communicator.hpp"
#include "stand_in_nccl.hpp"
#include "transport.hpp"
#include "values.hpp"

using hetseq::stand_in::addition;
using hetseq::stand_in::reads;
using hetseq::stand_in::report_misuse;
using hetseq::stand_in::size_of;
using hetseq::stand_in::Transport;
using hetseq::stand_in::Use;
using hetseq::stand_in::writes;

#define NCCL_CALL extern "C"

namespace {

constexpr int every_rank = -1;

std::string asked(const char* kind, std::size_t count, ncclDataType_t type, int root) {
    return std::string(kind) + " of " + std::to_string(count) + " values of type " +
           std::to_string(type) + (root == every_rank ? "" : ", root " + std::to_string(root));
}

// False, and reported, for a root that is no rank.
bool is_rank(const char* kind, int root, const ncclComm* comm) {
    if (root >= 0 && root < comm->transport->size())
        return true;
    report_misuse(std::string(kind) + " with root " + std::to_string(root));
    return false;
}

// A rank's part of what all have must be apart from it, or where it belongs in it.
void check_part(
    const char* kind, const void* part, const void* whole, std::size_t bytes, int rank, int size) {
    const auto* const own = static_cast<const std::byte*>(part);
    const auto* const begin = static_cast<const std::byte*>(whole);
    const bool is_apart =
        own + bytes <= begin || begin + bytes * static_cast<std::size_t>(size) <= own;
    if (!is_apart && own != begin + bytes * static_cast<std::size_t>(rank))
        report_misuse(std::string(kind) + " in place whose part is not the rank's");
}

// The sum goes to `root`, a rank or `every_rank`.
ncclResult_t start_reduction(const char* kind,
                             const void* from,
                             void* to,
                             std::size_t count,
                             ncclDataType_t type,
                             ncclRedOp_t operation,
                             int root,
                             ncclComm_t comm,
                             cudaStream_t stream) {
    const auto add = addition(type, operation, count);
    if (!add || (root != every_rank && !is_rank(kind, root, comm)))
        return ncclInvalidArgument;
    const std::size_t bytes = count * size_of(type);
    std::vector<Use> uses{reads(static_cast<const char*>(from), bytes)};
    if (root == every_rank || root == comm->transport->rank)
        uses.push_back(writes(static_cast<const char*>(to), bytes));
    const auto run = [=](Transport& peers, int sequence) {
        const bool is_wanted = root == every_rank || root == peers.rank;
        std::vector<std::byte> unwanted(is_wanted ? 0 : bytes);
        reduce_to_all(peers, sequence, from, is_wanted ? to : unwanted.data(), bytes, add);
    };
    return comm->ask({kind, asked(kind, count, type, root), bytes, uses, run}, stream);
}

}  // namespace

NCCL_CALL ncclResult_t ncclReduce(const void* from,
                                  void* to,
                                  std::size_t count,
                                  ncclDataType_t type,
                                  ncclRedOp_t operation,
                                  int root,
                                  ncclComm_t comm,
                                  cudaStream_t stream) {
    return start_reduction("a reduction", from, to, count, type, operation, root, comm, stream);
}

NCCL_CALL ncclResult_t ncclAllReduce(const void* from,
                                     void* to,
                                     std::size_t count,
                                     ncclDataType_t type,
                                     ncclRedOp_t operation,
                                     ncclComm_t comm,
                                     cudaStream_t stream) {
    return start_reduction(
        "an all-reduce", from, to, count, type, operation, every_rank, comm, stream);
}

NCCL_CALL ncclResult_t ncclReduceScatter(const void* from,
                                         void* to,
                                         std::size_t count,
                                         ncclDataType_t type,
                                         ncclRedOp_t operation,
                                         ncclComm_t comm,
                                         cudaStream_t stream) {
    constexpr const char* kind = "a reduce-scatter";
    const int rank = comm->transport->rank;
    const int size = comm->transport->size();
    const std::size_t all = count * static_cast<std::size_t>(size);
    const auto add = addition(type, operation, all);
    if (!add)
        return ncclInvalidArgument;
    const std::size_t bytes = count * size_of(type);
    check_part(kind, to, from, bytes, rank, size);
    const std::vector<Use> uses{reads(static_cast<const char*>(from), all * size_of(type)),
                                writes(static_cast<const char*>(to), bytes)};
    const auto run = [=](Transport& peers, int sequence) {
        std::vector<std::byte> sums(all * size_of(type));
        if (reduce_to_all(peers, sequence, from, sums.data(), sums.size(), add))
            std::memcpy(to, sums.data() + bytes * static_cast<std::size_t>(rank), bytes);
    };
    return comm->ask({kind, asked(kind, count, type, every_rank), all * size_of(type), uses, run},
                     stream);
}

NCCL_CALL ncclResult_t ncclAllGather(const void* from,
                                     void* to,
                                     std::size_t count,
                                     ncclDataType_t type,
                                     ncclComm_t comm,
                                     cudaStream_t stream) {
    constexpr const char* kind = "an all-gather";
    const int rank = comm->transport->rank;
    const int size = comm->transport->size();
    const std::size_t bytes = count * size_of(type);
    const std::size_t all = bytes * static_cast<std::size_t>(size);
    check_part(kind, from, to, bytes, rank, size);
    const std::vector<Use> uses{reads(static_cast<const char*>(from), bytes),
                                writes(static_cast<const char*>(to), all)};
    const auto run = [=](Transport& peers, int sequence) {
        auto* const parts = static_cast<std::byte*>(to);
        std::memmove(parts + bytes * static_cast<std::size_t>(rank), from, bytes);
        for (int root = 0; root < size; ++root)
            if (!broadcast(
                    peers, sequence, parts + bytes * static_cast<std::size_t>(root), bytes, root))
                return;
    };
    return comm->ask({kind, asked(kind, count, type, every_rank), all, uses, run}, stream);
}

NCCL_CALL ncclResult_t ncclBroadcast(const void* from,
                                     void* to,
                                     std::size_t count,
                                     ncclDataType_t type,
                                     int root,
                                     ncclComm_t comm,
                                     cudaStream_t stream) {
    constexpr const char* kind = "a broadcast";
    if (!is_rank(kind, root, comm))
        return ncclInvalidArgument;
    const std::size_t bytes = count * size_of(type);
    const bool is_root = root == comm->transport->rank;
    std::vector<Use> uses;
    if (is_root)
        uses.push_back(reads(static_cast<const char*>(from), bytes));
    if (!is_root || to != from)
        uses.push_back(writes(static_cast<const char*>(to), bytes));
    const auto run = [=](Transport& peers, int sequence) {
        if (to != from && peers.rank == root)
            std::memcpy(to, from, bytes);
        broadcast(peers, sequence, to, bytes, root);
    };
    return comm->ask({kind, asked(kind, count, type, root), bytes, uses, run}, stream);
}
