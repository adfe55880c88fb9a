#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>

namespace hetseq {

/// Blocks of memory, of tens of KiB and more, that are taken and given back again and again, in
/// sizes that differ a little each time. Blocks that were given back stay, so that their pages need
/// not be cleared anew, and are taken by the next one that they fit. A block that none fits
/// replaces smaller ones: so the cache holds about as much as was in use at once, whatever the
/// order of sizes. (A heap holds what its gaps add up to.) Safe for several threads.
class MappedBlocks {
public:
    MappedBlocks() = default;
    ~MappedBlocks();
    MappedBlocks(const MappedBlocks&) = delete;
    MappedBlocks& operator=(const MappedBlocks&) = delete;

    /// `bytes` > 0, at a page's beginning; nullptr where the system has no more. What it holds is
    /// not set.
    void* take(std::size_t bytes);
    /// Takes back what `take` gave. False, and nothing else, for any other pointer.
    bool give_back(void* block);
    /// Gives blocks that are not in use to the system.
    void release();

    std::size_t held() const;  // bytes, in use or not

private:
    void* map(std::size_t bytes);
    void unmap_smaller(std::size_t bytes);
    void unmap_all();
    void unmap(void* block, std::size_t bytes);

    mutable std::mutex mutex_;
    std::unordered_map<void*, std::size_t> used_;  // their bytes
    std::multimap<std::size_t, void*> free_;       // by bytes
    std::size_t held_ = 0;
};

/// Of this process's large tensors on the CPU. It is never destroyed: tensors may outlive
/// everything.
MappedBlocks& tensor_blocks();

}  // namespace hetseq
