#include "hetseq/data/blocks/block_schedule.hpp"

#include <algorithm>
#include <limits>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

BlockSchedule::BlockSchedule(std::int64_t slots) : slots_(static_cast<std::size_t>(slots)) {
    HETSEQ_ASSERT(slots >= 1);
}

// The time when the slot's block is used next. A time that has passed without a use (the host had
// no work there) tells nothing about the future.
std::int64_t BlockSchedule::urgency(const Slot& slot, std::int64_t now) const noexcept {
    return slot.block < 0 || slot.next_use < now ? never : slot.next_use;
}

std::int64_t BlockSchedule::victim(std::int64_t now) const {
    const auto farthest =
        std::max_element(slots_.begin(), slots_.end(), [&](const Slot& a, const Slot& b) {
            const std::int64_t left = urgency(a, now);
            const std::int64_t right = urgency(b, now);
            // Among equals, take the one that was used last the longest ago: its ranks have likely
            // released it.
            return left != right ? left < right : a.used_below > b.used_below;
        });
    return farthest - slots_.begin();
}

BlockSchedule::Slot* BlockSchedule::find(std::int64_t block) {
    const auto found = slot_of_block_.find(block);
    return found == slot_of_block_.end() ? nullptr
                                         : &slots_[static_cast<std::size_t>(found->second)];
}

BlockLoad BlockSchedule::load(std::int64_t block, std::int64_t slot) {
    Slot& target = slots_[static_cast<std::size_t>(slot)];
    if (target.block >= 0)
        slot_of_block_.erase(target.block);
    slot_of_block_[block] = slot;
    target.block = block;
    target.load = next_load_++;
    return {target.load, block, slot, target.used_below};
}

BlockUse BlockSchedule::use(std::span<const Block> blocks, std::int64_t now) {
    HETSEQ_ASSERT(blocks.size() <= slots_.size());
    BlockUse result;
    result.ticket = next_ticket_++;
    // The blocks that are in the cache already must not be evicted for the others.
    for (const Block& block : blocks) {
        if (Slot* slot = find(block.block))
            *slot = {slot->block, slot->load, next_ticket_, now};
    }
    for (const Block& block : blocks) {
        const auto found = slot_of_block_.find(block.block);
        const std::int64_t slot = found != slot_of_block_.end() ? found->second : victim(now);
        if (found == slot_of_block_.end())
            result.loads.push_back(load(block.block, slot));
        Slot& used = slots_[static_cast<std::size_t>(slot)];
        used.used_below = next_ticket_;
        used.next_use = now;
        result.blocks.push_back(block.block);
        result.slots.push_back(slot);
        result.loaded_below = std::max(result.loaded_below, used.load + 1);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i)
        slots_[static_cast<std::size_t>(result.slots[i])].next_use = blocks[i].next_use;
    return result;
}

std::vector<BlockLoad> BlockSchedule::prefetch(std::span<const std::int64_t> blocks,
                                               std::int64_t now,
                                               std::int64_t when) {
    for (const std::int64_t block : blocks) {
        Slot* slot = find(block);
        if (slot != nullptr && urgency(*slot, now) > when)
            slot->next_use = when;
    }
    std::vector<BlockLoad> loads;
    for (const std::int64_t block : blocks) {
        if (slot_of_block_.contains(block))
            continue;
        const std::int64_t slot = victim(now);
        if (urgency(slots_[static_cast<std::size_t>(slot)], now) <= when)
            break;
        loads.push_back(load(block, slot));
        slots_[static_cast<std::size_t>(slot)].next_use = when;
    }
    return loads;
}

}  // namespace hetseq
