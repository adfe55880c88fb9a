#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {

class HostComm;

/// Messages of tensors between this rank and others while they compute: first in, first out in each
/// direction of each pair. A thread of its own makes all calls of MPI, and sleeps while nothing
/// moves. Once it has failed, every call throws the same exception.
class PeerChannel {
public:
    struct Options {
        std::size_t piece_bytes = std::size_t{1} << 20;  // at most in one message of MPI
        std::size_t most_sent = 4;     // messages of MPI under way to one peer, and as many from it
        std::size_t most_waiting = 8;  // messages of one peer that nobody has received yet
        std::chrono::milliseconds deadline{1'800'000};  // of a wait, without any movement
        // This rank has less than a core for each thread that computes. Looks at messages take its
        // computing's time, so there are fewer. A message may arrive later by half a millisecond,
        // or by a sixteenth of what it takes.
        bool lacks_cores = false;
    };
    /// Of this rank.
    struct Traffic {
        std::int64_t bytes_sent = 0;  // of tensors
        std::int64_t bytes_received = 0;
        double waited_ms = 0;  // in `receive`, and for messages to leave to one peer
    };

    /// Collective over `world`. `peers`: whom this rank exchanges messages with, the same relation
    /// on both sides; InternalError on all ranks where it is not. `device`: where received tensors
    /// are. Throws CommError on all ranks where `threads` of one is less than `multiple`.
    PeerChannel(const HostComm& world,
                const std::vector<int>& peers,
                at::Device device,
                ThreadSupport threads,
                const Options& options);
    /// Waits until all has left that was sent, but abandons it while an exception unwinds. What
    /// peers have sent must have been received. MPI keeps the memory of what is not complete.
    ~PeerChannel();
    PeerChannel(const PeerChannel&) = delete;
    PeerChannel& operator=(const PeerChannel&) = delete;

    /// Does not wait. Tensors of any size and type, dense, perhaps undefined, perhaps none at all.
    /// They live until they have left, and must not change before on a CPU; a GPU sends what its
    /// current stream has been asked for.
    void start_send(int peer, const std::vector<at::Tensor>& tensors);
    /// The next message of `peer`, which it waits for, sleeping. Leaves on `device` with the
    /// sender's sizes, types and `requires_grad`; on a GPU for the current stream. Throws CommError
    /// when nothing has come from `peer` within the deadline, when MPI fails, and after `abandon`.
    /// A message that a GPU has no memory for stays the next one.
    std::vector<at::Tensor> receive(int peer);
    /// Waits until all that this rank sent has left, so that its memory is free. Throws like
    /// `receive`.
    void wait_for_sends();
    /// Waits until at most `most_left` messages to `peer` have not left. Throws like `receive`.
    void wait_for_sends(int peer, std::size_t most_left);
    /// From any thread: waits end soon, with CommError.
    void abandon() noexcept;
    /// Since the last call.
    Traffic take_traffic();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
