// allocations.json: what it says is what AllocationLog would write.
#include "hetseq/state/allocation_log.hpp"

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

using namespace hetseq;

namespace {

// Without entries that repeat the one before.
std::vector<AllocationsByUpdate::value_type> changes(const AllocationsByUpdate& allocations) {
    std::vector<AllocationsByUpdate::value_type> result;
    for (const auto& entry : allocations)
        if (result.empty() || result.back().second != entry.second)
            result.push_back(entry);
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Folder folder;
    const std::vector<std::int64_t> capacities{4, 4, 0};
    constexpr std::int64_t batch_size = 10;
    const fuzz::MemoryFile file{fuzz::text_of(data, size)};
    const auto recorded =
        fuzz::parsed([&] { return read_allocations(file.path(), capacities, batch_size); });
    if (!recorded)
        return 0;
    AllocationLog log{folder / "allocations.json", recorded->micro_batches};
    for (const auto& [update, units] : recorded->by_update)
        log.add(update, units);
    const auto again = read_allocations(folder / "allocations.json", capacities, batch_size);
    FUZZ_CHECK(changes(again.by_update) == changes(recorded->by_update));
    FUZZ_CHECK(again.micro_batches == recorded->micro_batches);
    return 0;
}
