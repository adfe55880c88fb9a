#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include "../cuda/runtime.hpp"
#include "stand_in_nccl.hpp"
#include "transport.hpp"

using hetseq::stand_in::Invitation;
using hetseq::stand_in::Member;
using hetseq::stand_in::network;
using hetseq::stand_in::reads;
using hetseq::stand_in::report_misuse;
using hetseq::stand_in::Transport;
using hetseq::stand_in::Use;
using hetseq::stand_in::writes;

#define NCCL_CALL extern "C"

namespace {

std::atomic<int> aborted{0};
std::atomic<int> destroyed{0};
std::atomic<long> started{0};

long number(const char* variable, long otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atol(text);
}

hetseq::stand_in::Network network_of_environment() {
    hetseq::stand_in::Network network;
    network.version = static_cast<int>(number("STAND_IN_NCCL_VERSION", network.version));
    network.launch_time =
        std::chrono::microseconds{number("STAND_IN_NCCL_LAUNCH_US", network.launch_time.count())};
    network.kernel_time =
        std::chrono::microseconds{number("STAND_IN_NCCL_KERNEL_US", network.kernel_time.count())};
    int has_ranks = 0;
    MPI_Initialized(&has_ranks);
    int rank = 0;
    if (has_ranks != 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (number("STAND_IN_NCCL_INIT_FAILS_ON", -1) == rank)
        network.init_result = ncclSystemError;
    return network;
}

// The upper half of a float.
class Bf16 {
public:
    Bf16& operator+=(Bf16 other) {
        const auto bits = std::bit_cast<std::uint32_t>(value() + other.value());
        const bool is_nan = std::isnan(std::bit_cast<float>(bits));
        const std::uint32_t to_even = 0x7fff + (bits >> 16 & 1);
        bits_ = static_cast<std::uint16_t>((is_nan ? bits | 0x10000 : bits + to_even) >> 16);
        return *this;
    }

private:
    float value() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

    std::uint16_t bits_;
};

using Addition = std::function<void(void* sum, const void* part)>;

template <class T>
Addition addition_of(std::size_t count) {
    return [count](void* sum, const void* part) {
        auto* const to = static_cast<T*>(sum);
        const auto* const from = static_cast<const T*>(part);
        for (std::size_t i = 0; i < count; ++i)
            to[i] += from[i];
    };
}

// Empty, and reported, for what the stand-in does not imitate.
Addition addition(ncclDataType_t type, ncclRedOp_t operation, std::size_t count) {
    if (operation == ncclSum && type == ncclFloat32)
        return addition_of<float>(count);
    if (operation == ncclSum && type == ncclFloat64)
        return addition_of<double>(count);
    if (operation == ncclSum && type == ncclBfloat16)
        return addition_of<Bf16>(count);  // rounded at each rank, as around a ring
    report_misuse("a reduction that the stand-in does not imitate");
    return {};
}

// The real one hangs or gives wrong sums with unlike versions, and refuses two ranks on one GPU.
void check_members(const std::vector<Member>& members) {
    std::set<int> versions;
    std::set<int> gpus;
    for (const Member& member : members) {
        versions.insert(member.version);
        gpus.insert(member.gpu);
    }
    if (versions.size() > 1)
        report_misuse("a communicator of unlike versions of NCCL");
    if (gpus.size() < members.size())
        report_misuse("a communicator of two ranks on one GPU");
}

std::size_t size_of(ncclDataType_t type) {
    switch (type) {
        case ncclFloat32:
            return sizeof(float);
        case ncclFloat64:
            return sizeof(double);
        case ncclBfloat16:
            return sizeof(Bf16);
        default:
            return 1;
    }
}

}  // namespace

/// Stays after its end, so that a later use is seen.
struct ncclComm {
    std::shared_ptr<Transport> transport = std::make_shared<Transport>();
    std::atomic<ncclResult_t> state{ncclInProgress};
    std::atomic<bool> ended{false};
    int sequence = 0;
    std::set<std::string> connected;
    std::thread call;

    /// Does the rest of a call in the background.
    template <class Rest>
    ncclResult_t finish_later(Rest rest) {
        state = ncclInProgress;
        if (call.joinable())
            call.join();
        call = std::thread([this, rest, device = hetseq::stand_in::current_device()] {
            cudaSetDevice(device);
            std::this_thread::sleep_for(network().launch_time);
            state = rest();
        });
        return ncclInProgress;
    }

    /// False, and reported, where the program may not use it.
    bool usable(const char* what) {
        if (!ended && state == ncclSuccess)
            return true;
        report_misuse(std::string(what) + (ended ? " of a communicator that has ended"
                                                 : " before the last call is done"));
        return false;
    }

    // Real connections are made for each algorithm, which the size decides.
    ncclResult_t connect(const std::string& kind, std::size_t bytes) {
        const std::string connection = kind + (bytes < (64u << 10) ? " small" : " large");
        if (!connected.insert(connection).second)
            return ncclSuccess;
        void* memory = nullptr;
        return cudaMalloc(&memory, network().connection_memory) == cudaSuccess
                   ? ncclSuccess
                   : ncclUnhandledCudaError;
    }

    /// `collective(transport, sequence)` runs on `stream`. `kind` must live as long as the program.
    template <class Collective>
    ncclResult_t start(const char* kind,
                       std::size_t bytes,
                       std::vector<hetseq::stand_in::Use> uses,
                       cudaStream_t stream,
                       Collective collective) {
        if (!usable(kind))
            return ncclInvalidUsage;
        if (network().call_result != ncclSuccess)
            return network().call_result;
        ++started;
        const int now = sequence++;
        return finish_later([this,
                             kind,
                             bytes,
                             uses = std::move(uses),
                             stream,
                             now,
                             collective,
                             behaviour = network()] {
            const ncclResult_t connection = connect(kind, bytes);
            if (connection != ncclSuccess)
                return connection;
            const auto run = [peers = transport, now, collective, behaviour] {
                std::this_thread::sleep_for(behaviour.kernel_time);
                while (behaviour.kernels_hang && !peers->aborted)
                    std::this_thread::sleep_for(std::chrono::milliseconds{1});
                if (!peers->aborted)
                    collective(*peers, now);
            };
            hetseq::stand_in::launch(stream, kind, uses, run);
            return ncclSuccess;
        });
    }

    void end() {
        ended = true;
        if (call.joinable())
            call.join();
    }
};

namespace hetseq::stand_in {

Network& network() {
    static auto* const network = new Network(network_of_environment());
    return *network;
}
int aborted_communicators() {
    return aborted;
}
int destroyed_communicators() {
    return destroyed;
}
long collectives() {
    return started;
}

}  // namespace hetseq::stand_in

NCCL_CALL const char* ncclGetErrorString(ncclResult_t code) {
    return code == ncclUnhandledCudaError ? "unhandled cuda error (run with NCCL_DEBUG=INFO)"
                                          : "an error that a test asked for";
}
NCCL_CALL const char* ncclGetLastError(ncclComm_t) {
    return "NCCL's stand-in";
}

NCCL_CALL ncclResult_t ncclGetVersion(int* version) {
    *version = network().version;
    return ncclSuccess;
}

NCCL_CALL ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    const Invitation invitation = hetseq::stand_in::make_invitation();
    static_assert(sizeof invitation <= sizeof *id);
    std::memset(id, 0, sizeof *id);
    std::memcpy(id, &invitation, sizeof invitation);
    return ncclSuccess;
}

NCCL_CALL ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
    if (config->blocking != 0)
        report_misuse("a blocking communicator, which hangs for ever with a rank that is lost");
    *comm = new ncclComm;
    if (network().init_result != ncclSuccess) {
        (*comm)->state = network().init_result;
        return network().init_result;
    }
    Invitation invitation;
    std::memcpy(static_cast<void*>(&invitation), &id, sizeof invitation);
    const int device = hetseq::stand_in::current_device();
    const Member mine{rank, network().version, hetseq::stand_in::gpu_of(device)};
    return (*comm)->finish_later([peers = (*comm)->transport, invitation, mine, size] {
        return hetseq::stand_in::bootstrap(*peers, invitation, mine, size, check_members)
                   ? ncclSuccess
                   : ncclInternalError;
    });
}

NCCL_CALL ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
    if (comm->ended)
        report_misuse("ncclCommGetAsyncError of a communicator that has ended");
    *result = comm->state;
    if (*result == ncclSuccess && network().async_error != ncclSuccess)
        *result = network().async_error;
    return ncclSuccess;
}

NCCL_CALL ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (!comm->usable("ncclCommFinalize"))
        return ncclInvalidUsage;
    return comm->finish_later([device = hetseq::stand_in::current_device()] {
        hetseq::stand_in::wait_for_device(device, "ncclCommFinalize");
        return ncclSuccess;
    });
}

NCCL_CALL ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    comm->end();
    ++destroyed;
    return ncclSuccess;
}

NCCL_CALL ncclResult_t ncclCommAbort(ncclComm_t comm) {
    comm->transport->aborted = true;
    comm->end();
    ++aborted;
    return ncclSuccess;
}

namespace {

constexpr int every_rank = -1;

// The sum goes to `root`, a rank or `every_rank`.
ncclResult_t start_reduction(const char* name,
                             const void* from,
                             void* to,
                             std::size_t count,
                             ncclDataType_t type,
                             ncclRedOp_t operation,
                             int root,
                             ncclComm_t comm,
                             cudaStream_t stream) {
    const auto add = addition(type, operation, count);
    if (!add)
        return ncclInvalidArgument;
    const std::size_t bytes = count * size_of(type);
    std::vector<Use> uses{reads(static_cast<const char*>(from), bytes)};
    if (root == every_rank || root == comm->transport->rank)
        uses.push_back(writes(static_cast<const char*>(to), bytes));
    return comm->start(name, bytes, uses, stream, [=](Transport& peers, int sequence) {
        const bool is_wanted = root == every_rank || root == peers.rank;
        std::vector<std::byte> unwanted(is_wanted ? 0 : bytes);
        reduce_to_all(peers, sequence, from, is_wanted ? to : unwanted.data(), bytes, add);
    });
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

NCCL_CALL ncclResult_t ncclBroadcast(const void* from,
                                     void* to,
                                     std::size_t count,
                                     ncclDataType_t type,
                                     int root,
                                     ncclComm_t comm,
                                     cudaStream_t stream) {
    const std::size_t bytes = count * size_of(type);
    const bool is_root = root == comm->transport->rank;
    std::vector<Use> uses;
    if (is_root)
        uses.push_back(reads(static_cast<const char*>(from), bytes));
    if (!is_root || to != from)
        uses.push_back(writes(static_cast<const char*>(to), bytes));
    return comm->start("a broadcast", bytes, uses, stream, [=](Transport& peers, int sequence) {
        if (to != from && peers.rank == root)
            std::memcpy(to, from, bytes);
        broadcast(peers, sequence, to, bytes, root);
    });
}
