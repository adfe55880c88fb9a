// allocations.json: what it says is what AllocationLog would write.
#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

#include "hetseq/train/allocation_log.hpp"

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
    const auto allocations =
        fuzz::parsed([&] { return read_allocations(file.path(), capacities, batch_size); });
    if (!allocations)
        return 0;
    AllocationLog log{folder / "allocations.json"};
    for (const auto& [update, units] : *allocations)
        log.add(update, units);
    FUZZ_CHECK(changes(read_allocations(folder / "allocations.json", capacities, batch_size)) ==
               changes(*allocations));
    return 0;
}
