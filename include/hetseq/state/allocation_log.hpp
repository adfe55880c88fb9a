#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hetseq/data/order/batch_items.hpp"

namespace hetseq {

/// Units by rank of a full batch, by the update (counted from 0) at which they take effect.
using AllocationsByUpdate = std::map<std::int64_t, std::vector<std::int64_t>>;

/// The entry that holds at `update`; the end iterator if there is none.
AllocationsByUpdate::const_iterator holding_at(const AllocationsByUpdate& allocations,
                                               std::int64_t update);

/// The contents of allocations.json.
struct RecordedAllocations {
    AllocationsByUpdate by_update;
    std::vector<std::int64_t> micro_batches;  // most units of one, by rank; empty: not said
    ItemCost item_cost = {};                  // what units are, of samples of unequal length

    /// Units of a full batch.
    std::int64_t full_batch() const;
};

/// RUN/allocations.json: how full batches were cut. A change is written at the end of the file,
/// however many came before. It is not synced to disk: a continued run writes the whole file anew.
class AllocationLog {
public:
    /// `path` empty: nothing is written. `micro_batches`: by rank. `earlier`: the cuts that a
    /// continued run already made. `may_write`: whether the folder is still this job's.
    AllocationLog(
        std::filesystem::path path,
        std::vector<std::int64_t> micro_batches,
        AllocationsByUpdate earlier = {},
        const ItemCost& item_cost = {},
        std::function<bool()> may_write = [] { return true; })
        : path_{std::move(path)},
          micro_batches_{std::move(micro_batches)},
          allocations_{std::move(earlier)},
          item_cost_{item_cost},
          may_write_{std::move(may_write)} {}

    /// Returns true if the allocation is a new one. Throws IoError.
    bool add(std::int64_t update, const std::vector<std::int64_t>& allocation);
    const AllocationsByUpdate& allocations() const noexcept { return allocations_; }

private:
    void write_all() const;
    bool append(const std::string& entry) const;

    std::filesystem::path path_;
    std::vector<std::int64_t> micro_batches_;
    AllocationsByUpdate allocations_;
    ItemCost item_cost_;
    std::function<bool()> may_write_;
    bool is_written_ = false;
};

/// Reads such a file for ranks of these capacities (0: no work) and a global batch of `batch_size`
/// units (0: as the file says). Throws MissingInput, BadData (nothing from the first update on) or
/// BadConfig (another number of ranks, another batch, work for a rank that takes none).
RecordedAllocations read_allocations(const std::filesystem::path& path,
                                     const std::vector<std::int64_t>& capacities,
                                     std::int64_t batch_size);

}  // namespace hetseq
