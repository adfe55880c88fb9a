#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>

namespace hetseq {

/// Counts the tickets that each rank of a host has released, in memory that the ranks share. Each
/// rank has one counter on a cache line of its own. Memory filled with zeros is a fresh board.
class ReleaseBoard {
public:
    static std::size_t bytes(int ranks);

    /// `memory` has `bytes(ranks)` bytes, is aligned to 64 bytes and outlives the board.
    ReleaseBoard(std::span<std::byte> memory, int rank, int ranks);

    /// Releases `ticket` for this rank. Tickets may come in any order, each once. Thread-safe.
    void release(std::int64_t ticket);
    /// True once every rank has released all tickets below `ticket`. Never blocks.
    bool all_released_below(std::int64_t ticket) const;

private:
    std::int64_t& counter(int rank) const;

    std::span<std::byte> memory_;
    int rank_;
    int ranks_;
    std::mutex mutex_;
    std::set<std::int64_t> early_;  // released while a lower one was not
};

}  // namespace hetseq
