#include "transport.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include <mpi.h>

namespace hetseq::stand_in {

namespace {

constexpr int tags_of_one = 4096;  // collectives in flight are fewer
constexpr int bootstrap_tag = 0;
constexpr int first_collective_tag = 1;

int tag_of(const Transport& transport, int sequence) {
    return transport.tags + first_collective_tag + sequence % (tags_of_one - first_collective_tag);
}

bool wait(const Transport& transport, MPI_Request& request, MPI_Status* status) {
    for (int done = 0; done == 0;) {
        MPI_Test(&request, &done, status);
        if (done != 0)
            return true;
        if (transport.aborted)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
    return true;
}

bool send(const Transport& transport, int to, int tag, const void* bytes, std::size_t count) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    return wait(transport, request, MPI_STATUS_IGNORE);
}

bool receive(const Transport& transport,
             int from,
             int tag,
             void* bytes,
             std::size_t count,
             MPI_Status* status = MPI_STATUS_IGNORE) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    if (wait(transport, request, status))
        return true;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    return false;
}

}  // namespace

Invitation make_invitation() {
    static std::atomic<int> made{0};
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return {rank, ++made * size + rank};
}

bool bootstrap(Transport& transport,
               const Invitation& invitation,
               const Member& mine,
               int size,
               const std::function<void(const std::vector<Member>&)>& check) {
    transport.rank = mine.rank;
    transport.world_ranks.assign(static_cast<std::size_t>(size), invitation.root);
    transport.tags = invitation.number * tags_of_one;
    const int tag = transport.tags + bootstrap_tag;
    const std::size_t bytes = transport.world_ranks.size() * sizeof(int);
    int own = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    if (own != invitation.root)
        return send(transport, invitation.root, tag, &mine, sizeof mine) &&
               receive(transport, invitation.root, tag, transport.world_ranks.data(), bytes);
    transport.world_ranks[static_cast<std::size_t>(mine.rank)] = own;
    std::vector<Member> members{mine};
    std::vector<int> others;
    for (int i = 1; i < size; ++i) {
        Member member;
        MPI_Status status;
        if (!receive(transport, MPI_ANY_SOURCE, tag, &member, sizeof member, &status))
            return false;
        transport.world_ranks[static_cast<std::size_t>(member.rank)] = status.MPI_SOURCE;
        others.push_back(status.MPI_SOURCE);
        members.push_back(member);
    }
    check(members);
    for (const int other : others)
        if (!send(transport, other, tag, transport.world_ranks.data(), bytes))
            return false;
    return true;
}

std::optional<bool> all_alike(Transport& transport, int sequence, std::uint64_t asked) {
    const int tag = tag_of(transport, sequence);
    const int first = transport.world_ranks[0];
    char alike = 1;
    if (transport.rank != 0) {
        if (!send(transport, first, tag, &asked, sizeof asked) ||
            !receive(transport, first, tag, &alike, sizeof alike))
            return std::nullopt;
        return alike != 0;
    }
    for (int rank = 1; rank < transport.size(); ++rank) {
        std::uint64_t others = 0;
        const int other = transport.world_ranks[static_cast<std::size_t>(rank)];
        if (!receive(transport, other, tag, &others, sizeof others))
            return std::nullopt;
        if (others != asked)
            alike = 0;
    }
    if (!broadcast(transport, sequence, &alike, sizeof alike, 0))
        return std::nullopt;
    return alike != 0;
}

bool reduce_to_all(Transport& transport,
                   int sequence,
                   const void* from,
                   void* to,
                   std::size_t bytes,
                   const std::function<void(void* sum, const void* part)>& combine) {
    if (to != from)
        std::memcpy(to, from, bytes);
    const int tag = tag_of(transport, sequence);
    const int first = transport.world_ranks[0];
    if (transport.rank != 0)
        return send(transport, first, tag, to, bytes) && receive(transport, first, tag, to, bytes);
    std::vector<std::byte> part(bytes);
    for (int rank = 1; rank < transport.size(); ++rank) {
        const int other = transport.world_ranks[static_cast<std::size_t>(rank)];
        if (!receive(transport, other, tag, part.data(), bytes))
            return false;
        combine(to, part.data());
    }
    return broadcast(transport, sequence, to, bytes, 0);
}

bool broadcast(Transport& transport, int sequence, void* values, std::size_t bytes, int root) {
    const int tag = tag_of(transport, sequence);
    const int source = transport.world_ranks[static_cast<std::size_t>(root)];
    if (transport.rank != root)
        return receive(transport, source, tag, values, bytes);
    for (int rank = 0; rank < transport.size(); ++rank)
        if (rank != root && !send(transport,
                                  transport.world_ranks[static_cast<std::size_t>(rank)],
                                  tag,
                                  values,
                                  bytes))
            return false;
    return true;
}

}  // namespace hetseq::stand_in
