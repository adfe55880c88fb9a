#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "hetseq/comm/mpi/shared_window.hpp"
#include "hetseq/data/blocks/block_schedule.hpp"
#include "hetseq/data/blocks/release_board.hpp"

namespace hetseq {

class HostComm;

/// The blocks of a corpus that a host holds in memory, in slots that its ranks share. The I/O
/// thread fills slots and publishes them. Loaders wait for blocks, copy rows out and release them.
/// BlockSchedule decides which block goes into which slot.
class BlockCache {
public:
    /// Collective over `node`.
    BlockCache(const HostComm& node, std::int64_t slots, std::size_t slot_bytes);

    /// True if the ranks of the host fill the slots together; otherwise each rank has its own.
    bool shared() const noexcept { return window_.shared(); }
    std::span<std::byte> slot(std::int64_t index) const;

    /// I/O thread: sleeps until every rank has released what the load's slot held, or until
    /// `abandoned` is true.
    void wait_for_release(const BlockLoad& load, const std::function<bool()>& abandoned) const;
    /// I/O thread: says that the load is done. `error` is null if it went well.
    void publish(const BlockLoad& load, std::exception_ptr error);

    /// Loader: sleeps until the blocks of `use` are loaded. Throws the error of a bad block. False
    /// if `cancelled` became true instead.
    bool wait_for_blocks(const BlockUse& use, const std::atomic<bool>& cancelled);
    /// Wakes the threads that wait for blocks, so that they look at their `cancelled` again.
    void wake();
    /// Loader: says that this rank no longer needs the blocks of `ticket`.
    void release(std::int64_t ticket) { board_.release(ticket); }

private:
    std::size_t slot_bytes_;
    std::size_t board_bytes_;
    SharedWindow window_;
    ReleaseBoard board_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t loaded_ = 0;                 // loads published
    std::vector<std::exception_ptr> errors_;  // by slot
};

}  // namespace hetseq
