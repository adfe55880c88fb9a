#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace hetseq {

/// Reads `block` into `slot` of the cache.
struct BlockLoad {
    std::int64_t id = 0;  // counted from 0, in the order of loading
    std::int64_t block = 0;
    std::int64_t slot = 0;
    // Every rank of the host must release the tickets below this first, since they still use the
    // slot.
    std::int64_t released_below = 0;
    friend bool operator==(const BlockLoad&, const BlockLoad&) = default;
};

/// One use of some blocks, which are in the cache together.
struct BlockUse {
    std::int64_t ticket = 0;  // counted from 0; to be released by every rank of the host
    std::vector<std::int64_t> blocks;
    std::vector<std::int64_t> slots;  // of each block
    std::int64_t loaded_below = 0;    // loads below this id must be done
    std::vector<BlockLoad> loads;     // that this use causes, in order
};

/// Decides which block is loaded into which slot of a cache, and when. The result depends only on
/// the calls. The ranks of a host make the same calls, so they agree without a message. The block
/// whose next use is farthest away is evicted (Belady 1966). Times are any numbers that grow with
/// use, such as groups counted over epochs.
class BlockSchedule {
public:
    /// A block and when it will be used after this use.
    struct Block {
        std::int64_t block = 0;
        std::int64_t next_use = 0;
    };

    explicit BlockSchedule(std::int64_t slots);

    std::int64_t slots() const noexcept { return std::ssize(slots_); }

    /// Uses `blocks` (at most as many as there are slots) at time `now`.
    BlockUse use(std::span<const Block> blocks, std::int64_t now);
    /// Loads some of `blocks` ahead, for their use at time `when`. It loads as many as there is
    /// room for without evicting a block that is used earlier.
    std::vector<BlockLoad> prefetch(std::span<const std::int64_t> blocks,
                                    std::int64_t now,
                                    std::int64_t when);

private:
    struct Slot {
        std::int64_t block = -1;      // -1: empty
        std::int64_t load = -1;       // the load that filled it
        std::int64_t used_below = 0;  // tickets below this may use it
        std::int64_t next_use = 0;
    };

    std::int64_t urgency(const Slot& slot, std::int64_t now) const noexcept;
    std::int64_t victim(std::int64_t now) const;
    Slot* find(std::int64_t block);  // null: not in the cache
    BlockLoad load(std::int64_t block, std::int64_t slot);

    std::vector<Slot> slots_;
    std::unordered_map<std::int64_t, std::int64_t> slot_of_block_;
    std::int64_t next_ticket_ = 0;
    std::int64_t next_load_ = 0;
};

}  // namespace hetseq
