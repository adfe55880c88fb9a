#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/data/order/batch_items.hpp"

namespace hetseq {

/// One line of JSON: start_ms, micro_batch_ms, unit_ms, micro_batch, scale; max_units where it is
/// limited, and the table's points where there is one.
std::string step_cost_json(const StepCost& cost);
/// Throws BadData for anything else.
StepCost parse_step_cost(const std::string& json);

/// Reads one of the cache's files. Throws MissingInput or BadData.
StepCost read_step_cost(const std::filesystem::path& path);

/// A measured cost, as it is kept for later runs.
struct KeptCost {
    StepCost cost;
    ItemCost item_cost = {};  // what its units are, of samples of unequal length
};

/// Measured costs that later runs start with. Each is a small file, named by a hash of its key
/// (what the cost depends on: device, model, build).
class StepCostCache {
public:
    explicit StepCostCache(std::filesystem::path folder) : folder_{std::move(folder)} {}

    /// Empty if there is none, or if it cannot be read.
    std::optional<KeptCost> find(const std::string& key) const;
    /// Returns why the folder cannot be written; empty if it was, or where none is kept.
    std::string store(const std::string& key, const KeptCost& kept) const;

private:
    std::filesystem::path file_of(const std::string& key) const;

    std::filesystem::path folder_;
};

/// $XDG_CACHE_HOME/hetseq or ~/.cache/hetseq; empty without either.
std::filesystem::path default_cache_folder();

}  // namespace hetseq
