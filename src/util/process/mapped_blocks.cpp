#include "hetseq/util/process/mapped_blocks.hpp"

#include <algorithm>
#include <iterator>

#include <sys/mman.h>

namespace hetseq {

namespace {

constexpr std::size_t granule_of_small = std::size_t{32} << 10;
constexpr std::size_t granule_of_large = std::size_t{256} << 10;
constexpr std::size_t least_large = std::size_t{1} << 20;
constexpr std::size_t most_waste = 2;  // a block may be so many times what is wanted

std::size_t rounded_up(std::size_t bytes) {
    const std::size_t granule = bytes < least_large ? granule_of_small : granule_of_large;
    return (bytes + granule - 1) / granule * granule;
}

}  // namespace

MappedBlocks::~MappedBlocks() {
    for (const auto& [block, bytes] : used_)
        munmap(block, bytes);
    unmap_all();
}

void* MappedBlocks::take(std::size_t bytes) {
    const std::size_t wanted = rounded_up(bytes);
    const std::lock_guard lock{mutex_};
    const auto found = free_.lower_bound(wanted);
    if (found != free_.end() && found->first <= most_waste * wanted) {
        void* const block = found->second;
        used_.emplace(block, found->first);
        free_.erase(found);
        return block;
    }
    unmap_smaller(wanted);
    void* block = map(wanted);
    if (block == nullptr) {
        unmap_all();
        block = map(wanted);
    }
    if (block != nullptr)
        used_.emplace(block, wanted);
    return block;
}

bool MappedBlocks::give_back(void* block) {
    const std::lock_guard lock{mutex_};
    const auto found = used_.find(block);
    if (found == used_.end())
        return false;
    free_.emplace(found->second, block);
    used_.erase(found);
    return true;
}

void MappedBlocks::release() {
    const std::lock_guard lock{mutex_};
    unmap_all();
}

std::size_t MappedBlocks::held() const {
    const std::lock_guard lock{mutex_};
    return held_;
}

void* MappedBlocks::map(std::size_t bytes) {
    void* const block =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return nullptr;
    held_ += bytes;
    return block;
}

// The largest first, as much as is to be mapped.
void MappedBlocks::unmap_smaller(std::size_t bytes) {
    std::size_t left = bytes;
    auto next = free_.lower_bound(bytes);
    while (left > 0 && next != free_.begin()) {
        const auto block = std::prev(next);
        left -= std::min(left, block->first);
        unmap(block->second, block->first);
        next = free_.erase(block);
    }
}

void MappedBlocks::unmap_all() {
    for (const auto& [bytes, block] : free_)
        unmap(block, bytes);
    free_.clear();
}

// Where a process has as many mappings as it may (vm.max_map_count), none can be cut out of
// another: then its pages go back alone.
void MappedBlocks::unmap(void* block, std::size_t bytes) {
    if (munmap(block, bytes) != 0)
        madvise(block, bytes, MADV_DONTNEED);
    held_ -= bytes;
}

MappedBlocks& tensor_blocks() {
    static auto* const blocks = new MappedBlocks;
    return *blocks;
}

}  // namespace hetseq
