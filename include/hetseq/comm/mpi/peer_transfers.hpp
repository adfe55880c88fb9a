#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace hetseq {

class HostComm;

/// Bytes that one rank gives another, or itself.
struct PeerTransfer {
    int from = 0;
    int to = 0;
    std::size_t bytes = 0;
    const void* data = nullptr;  // on `from`; outlives the transfers, on other ranks unused
};

/// Moves bytes between ranks in pieces, any number of times. What arrives passes through a window,
/// so that no rank's memory grows with the bytes or the ranks.
class PeerTransfers {
public:
    struct Options {
        std::size_t piece_bytes = std::size_t{4} << 20;    // at most in one message
        std::size_t window_bytes = std::size_t{32} << 20;  // at least one piece
        std::size_t most_sent = 2;                         // pieces under way to one rank
        std::chrono::milliseconds deadline{1'800'000};     // without any movement
    };
    /// A piece of the transfer of this index, in memory that lasts for the call.
    using Take = std::function<void(std::size_t transfer, std::span<const std::byte> piece)>;

    /// Collective. `transfers` are the same on all ranks but for `data`. Takes the window's memory.
    /// Throws InternalError on all ranks where they are not the same.
    PeerTransfers(const HostComm& world,
                  std::vector<PeerTransfer> transfers,
                  const Options& options);
    /// Where a `move` has failed, MPI keeps the window, as it may keep `data`.
    ~PeerTransfers();
    PeerTransfers(const PeerTransfers&) = delete;
    PeerTransfers& operator=(const PeerTransfers&) = delete;

    /// Between two `move`: from now on that one's bytes are there.
    void take_from(std::size_t transfer, const void* data);
    /// Whether any goes from one rank to another. If not, `move` needs neither MPI nor a window.
    bool between_ranks() const noexcept;
    /// Collective where `between_ranks()`; one thread of a rank. Gives `take` all pieces that come
    /// to this rank, in the order of the transfers and of their bytes. If `take` throws, it is
    /// called no more, everything is moved nevertheless, and the exception leaves at the end.
    /// Throws CommError when nothing has moved within the deadline, when MPI fails, and after
    /// `abandon`; every later call then does so too.
    void move(const Take& take);
    /// From any thread: a `move` that is at work ends soon.
    void abandon() noexcept;
    /// A `move` has thrown CommError, or is at work. MPI may use `data` for ever.
    bool incomplete() const noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
