#include "hetseq/data/blocks/release_board.hpp"

#include <atomic>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::size_t cache_line = 64;

}  // namespace

std::size_t ReleaseBoard::bytes(int ranks) {
    return cache_line * static_cast<std::size_t>(ranks);
}

ReleaseBoard::ReleaseBoard(std::span<std::byte> memory, int rank, int ranks)
    : memory_{memory}, rank_{rank}, ranks_{ranks} {
    HETSEQ_ASSERT(memory.size() >= bytes(ranks));
}

std::int64_t& ReleaseBoard::counter(int rank) const {
    return *reinterpret_cast<std::int64_t*>(memory_.data() +
                                            cache_line * static_cast<std::size_t>(rank));
}

void ReleaseBoard::release(std::int64_t ticket) {
    const std::lock_guard lock{mutex_};
    const std::atomic_ref<std::int64_t> released{counter(rank_)};
    early_.insert(ticket);
    std::int64_t below = released.load(std::memory_order_relaxed);
    while (!early_.empty() && *early_.begin() == below) {
        early_.erase(early_.begin());
        ++below;
    }
    // A rank that sees the counter sees this rank's reads of the slots as done.
    released.store(below, std::memory_order_release);
}

bool ReleaseBoard::all_released_below(std::int64_t ticket) const {
    for (int rank = 0; rank < ranks_; ++rank) {
        const std::atomic_ref<std::int64_t> released{counter(rank)};
        if (released.load(std::memory_order_acquire) < ticket)
            return false;
    }
    return true;
}

}  // namespace hetseq
