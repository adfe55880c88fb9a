// A communicator of NCCL's stand-in, and the groups of calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../cuda/runtime.hpp"
#include "stand_in_nccl.hpp"
#include "transport.hpp"

namespace hetseq::stand_in {

/// One call of a collective.
struct Collective {
    const char* kind = "";    // lives as long as the program
    std::string asked;        // alike on all ranks: the kind, type, number of values, root
    std::size_t bytes = 0;    // by which NCCL chooses how it connects
    std::vector<Use> uses{};  // of memory of devices
    std::function<void(Transport& peers, int sequence)> run{};
};

/// False, and reported, between ncclGroupStart and ncclGroupEnd.
bool outside_groups(const char* call);

}  // namespace hetseq::stand_in

/// Stays after its end, so that a later use is seen.
struct ncclComm {
    std::shared_ptr<hetseq::stand_in::Transport> transport =
        std::make_shared<hetseq::stand_in::Transport>();
    std::atomic<ncclResult_t> state{ncclInProgress};

    /// Does the rest of a call in the background.
    template <class Rest>
    ncclResult_t finish_later(Rest rest) {
        state = ncclInProgress;
        if (call_.joinable())
            call_.join();
        call_ = std::thread([this, rest, device = hetseq::stand_in::current_device()] {
            cudaSetDevice(device);
            std::this_thread::sleep_for(hetseq::stand_in::network().launch_time);
            state = rest();
        });
        return ncclInProgress;
    }

    /// False, and reported, where the program may not use it.
    bool usable(const char* what) const;
    bool ended() const { return ended_; }
    void end();
    /// Frees what connections took.
    void disconnect();

    /// Launches `collective` on `stream`, at the end of the thread's group where there is one.
    ncclResult_t ask(hetseq::stand_in::Collective collective, cudaStream_t stream);
    /// Launches them on `stream`, as one.
    ncclResult_t launch(std::vector<hetseq::stand_in::Collective> collectives, cudaStream_t stream);

private:
    ncclResult_t connect(const std::string& kind, std::size_t bytes);

    std::atomic<bool> ended_{false};
    int sequence_ = 0;
    std::set<std::string> connected_;
    std::vector<void*> connections_;  // their memory on the device
    std::thread call_;
};
