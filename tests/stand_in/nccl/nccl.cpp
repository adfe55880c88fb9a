#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include <mpi.h>

#include "../cuda/runtime.hpp"
#include "communicator.hpp"
#include "stand_in_nccl.hpp"
#include "transport.hpp"

using hetseq::stand_in::Invitation;
using hetseq::stand_in::Member;
using hetseq::stand_in::network;
using hetseq::stand_in::outside_groups;
using hetseq::stand_in::report_misuse;

#define NCCL_CALL extern "C"

namespace {

std::atomic<int> aborted{0};
std::atomic<int> destroyed{0};

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

}  // namespace

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
    outside_groups("ncclCommInitRankConfig");
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
    if (comm->ended())
        report_misuse("ncclCommGetAsyncError of a communicator that has ended");
    *result = comm->state;
    if (*result == ncclSuccess && network().async_error != ncclSuccess)
        *result = network().async_error;
    return ncclSuccess;
}

NCCL_CALL ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (!outside_groups("ncclCommFinalize") || !comm->usable("ncclCommFinalize"))
        return ncclInvalidUsage;
    return comm->finish_later([device = hetseq::stand_in::current_device()] {
        hetseq::stand_in::wait_for_device(device, "ncclCommFinalize");
        return ncclSuccess;
    });
}

NCCL_CALL ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    outside_groups("ncclCommDestroy");
    comm->end();
    comm->disconnect();
    ++destroyed;
    return ncclSuccess;
}

NCCL_CALL ncclResult_t ncclCommAbort(ncclComm_t comm) {
    outside_groups("ncclCommAbort");
    comm->transport->aborted = true;
    comm->end();
    ++aborted;
    return ncclSuccess;
}
