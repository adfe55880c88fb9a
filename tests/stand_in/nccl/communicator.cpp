#include "communicator.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <utility>

using hetseq::stand_in::Access;
using hetseq::stand_in::all_alike;
using hetseq::stand_in::Collective;
using hetseq::stand_in::network;
using hetseq::stand_in::report_misuse;
using hetseq::stand_in::Transport;
using hetseq::stand_in::Use;

namespace {

constexpr std::size_t most_in_group = 2048;  // as NCCL 2.11 documents it

struct Calls {
    std::mutex mutex;
    std::map<std::string, long> of_kind;
};

Calls& all_calls() {
    static auto* const calls = new Calls;
    return *calls;
}

void count_call(const char* kind) {
    const std::lock_guard lock{all_calls().mutex};
    ++all_calls().of_kind[kind];
}

// What a thread asks for between ncclGroupStart and ncclGroupEnd.
struct Group {
    int depth = 0;
    ncclResult_t failure = ncclSuccess;  // of the first call that failed
    ncclComm* comm = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<Collective> collectives;
};

Group& group() {
    thread_local Group group;
    return group;
}

// The first failure of a group is that of its end, which launches nothing then.
ncclResult_t failed(ncclResult_t result) {
    if (group().depth > 0 && group().failure == ncclSuccess)
        group().failure = result;
    return result;
}

ncclResult_t add_to_group(ncclComm* comm, Collective collective, cudaStream_t stream) {
    Group& own = group();
    if (own.collectives.empty()) {
        own.comm = comm;
        own.stream = stream;
    } else if (own.comm != comm || own.stream != stream) {
        report_misuse("a group of several communicators or streams, which is not imitated");
        return failed(ncclInvalidUsage);
    }
    if (own.collectives.size() == most_in_group) {
        report_misuse("a group of more than 2,048 calls");
        return failed(ncclInvalidUsage);
    }
    own.collectives.push_back(std::move(collective));
    return ncclSuccess;
}

bool overlap(const Use& a, const Use& b) {
    const auto* const first = static_cast<const char*>(a.begin);
    const auto* const second = static_cast<const char*>(b.begin);
    return first < second + b.bytes && second < first + a.bytes;
}

// The real one runs the calls of a group at once, or in an order of its own.
void check_group(const std::vector<Collective>& collectives) {
    for (std::size_t i = 0; i < collectives.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            for (const Use& a : collectives[i].uses)
                for (const Use& b : collectives[j].uses)
                    if ((a.access == Access::write || b.access == Access::write) && overlap(a, b))
                        return report_misuse("calls of one group that write to the same memory");
}

// Runs on the stream.
void run(const std::vector<Collective>& collectives, Transport& peers, int sequence) {
    std::string asked;
    for (const Collective& one : collectives)
        asked += one.asked + "; ";
    const auto alike = all_alike(peers, sequence, std::hash<std::string>{}(asked));
    if (!alike)
        return;
    if (!*alike)
        return report_misuse("collectives that are unlike on other ranks: here " +
                             asked.substr(0, 200));
    for (const Collective& one : collectives)
        if (!peers.aborted)
            one.run(peers, sequence);
}

}  // namespace

namespace hetseq::stand_in {

long calls(const std::string& kind) {
    const std::lock_guard lock{all_calls().mutex};
    const auto found = all_calls().of_kind.find(kind);
    return found == all_calls().of_kind.end() ? 0 : found->second;
}

bool outside_groups(const char* call) {
    if (group().depth == 0)
        return true;
    report_misuse(std::string(call) + " within a group");
    return false;
}

}  // namespace hetseq::stand_in

bool ncclComm::usable(const char* what) const {
    if (!ended_ && state == ncclSuccess)
        return true;
    report_misuse(std::string(what) +
                  (ended_ ? " of a communicator that has ended" : " before the last call is done"));
    return false;
}

void ncclComm::end() {
    ended_ = true;
    if (call_.joinable())
        call_.join();
}

// Real connections are made for each algorithm, which the size decides.
ncclResult_t ncclComm::connect(const std::string& kind, std::size_t bytes) {
    const std::string connection = kind + (bytes < (64u << 10) ? " small" : " large");
    if (!connected_.insert(connection).second)
        return ncclSuccess;
    void* memory = nullptr;
    if (cudaMalloc(&memory, network().connection_memory) != cudaSuccess)
        return ncclUnhandledCudaError;
    connections_.push_back(memory);
    return ncclSuccess;
}

void ncclComm::disconnect() {
    for (void* const memory : connections_)
        cudaFree(memory);
    connections_.clear();
}

ncclResult_t ncclComm::ask(Collective collective, cudaStream_t stream) {
    if (!usable(collective.kind))
        return failed(ncclInvalidUsage);
    if (network().call_result != ncclSuccess)
        return failed(network().call_result);
    count_call(collective.kind);
    if (group().depth > 0)
        return add_to_group(this, std::move(collective), stream);
    std::vector<Collective> one;
    one.push_back(std::move(collective));
    return launch(std::move(one), stream);
}

ncclResult_t ncclComm::launch(std::vector<Collective> collectives, cudaStream_t stream) {
    const int now = sequence_++;
    return finish_later([this, collectives, stream, now, behaviour = network()] {
        std::vector<Use> uses;
        for (const Collective& one : collectives) {
            const ncclResult_t connection = connect(one.kind, one.bytes);
            if (connection != ncclSuccess)
                return connection;
            uses.insert(uses.end(), one.uses.begin(), one.uses.end());
        }
        const char* const name =
            collectives.size() == 1 ? collectives[0].kind : "a group of collectives";
        hetseq::stand_in::launch(
            stream, name, uses, [peers = transport, collectives, now, behaviour] {
                std::this_thread::sleep_for(behaviour.kernel_time);
                while (behaviour.kernels_hang && !peers->aborted)
                    std::this_thread::sleep_for(std::chrono::milliseconds{1});
                if (!peers->aborted)
                    run(collectives, *peers, now);
            });
        return ncclSuccess;
    });
}

extern "C" ncclResult_t ncclGroupStart() {
    ++group().depth;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGroupEnd() {
    if (group().depth == 0) {
        report_misuse("ncclGroupEnd without ncclGroupStart");
        return ncclInvalidUsage;
    }
    if (--group().depth > 0)
        return ncclSuccess;
    Group ending = std::exchange(group(), {});
    if (ending.failure != ncclSuccess || ending.collectives.empty())
        return ending.failure;
    check_group(ending.collectives);
    count_call("a group");
    return ending.comm->launch(std::move(ending.collectives), ending.stream);
}
