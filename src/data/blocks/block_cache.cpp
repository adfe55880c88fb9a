#include "block_cache.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

constexpr std::size_t page = 4096;

std::size_t page_aligned(std::size_t bytes) {
    return (bytes + page - 1) / page * page;
}

}  // namespace

BlockCache::BlockCache(const HostComm& node, std::int64_t slots, std::size_t slot_bytes)
    : slot_bytes_{slot_bytes},
      board_bytes_{page_aligned(ReleaseBoard::bytes(node.size()))},
      window_{node, board_bytes_ + static_cast<std::size_t>(slots) * slot_bytes},
      board_{
          window_.bytes(), window_.shared() ? node.rank() : 0, window_.shared() ? node.size() : 1},
      errors_(static_cast<std::size_t>(slots)) {}

std::span<std::byte> BlockCache::slot(std::int64_t index) const {
    return window_.bytes().subspan(board_bytes_ + static_cast<std::size_t>(index) * slot_bytes_,
                                   slot_bytes_);
}

void BlockCache::wait_for_release(const BlockLoad& load,
                                  const std::function<bool()>& abandoned) const {
    while (!board_.all_released_below(load.released_below) && !abandoned())
        std::this_thread::sleep_for(std::chrono::microseconds{100});
}

void BlockCache::publish(const BlockLoad& load, std::exception_ptr error) {
    {
        const std::lock_guard lock{mutex_};
        HETSEQ_ASSERT(load.id == loaded_);
        ++loaded_;
        errors_[static_cast<std::size_t>(load.slot)] = std::move(error);
    }
    changed_.notify_all();
}

bool BlockCache::wait_for_blocks(const BlockUse& use, const std::atomic<bool>& cancelled) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return loaded_ >= use.loaded_below || cancelled; });
    if (cancelled)
        return false;
    for (const std::int64_t slot : use.slots) {
        if (errors_[static_cast<std::size_t>(slot)])
            std::rethrow_exception(errors_[static_cast<std::size_t>(slot)]);
    }
    return true;
}

void BlockCache::wake() {
    // Taking the lock keeps the wake-up from falling between a waiter's look and its sleep.
    { const std::lock_guard lock{mutex_}; }
    changed_.notify_all();
}

}  // namespace hetseq
