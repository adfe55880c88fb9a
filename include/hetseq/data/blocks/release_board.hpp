#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>

namespace hetseq {

/// How many tickets each rank of a host has released, in memory that they share: one counter a
/// rank, each on a cache line of its own. Zero-filled memory is a fresh board.
class ReleaseBoard {
public:
    static std::size_t bytes(int ranks);

    /// `memory`: `bytes(ranks)`, 64-byte aligned, outlives the board.
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
    std::set<std::int64_t> early_;  // released ahead of one below
};

}  // namespace hetseq
