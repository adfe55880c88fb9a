#include "hetseq/train/allocation_log.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

// Throws what the library throws.
AllocationsByUpdate parse(const Json& json) {
    AllocationsByUpdate allocations;
    for (const Json& entry : json.at("allocations"))
        allocations[entry.at("update").get<std::int64_t>() - 1] =
            entry.at("units").get<std::vector<std::int64_t>>();
    return allocations;
}

void check(const std::vector<std::int64_t>& units,
           const std::string& path,
           const std::vector<std::int64_t>& capacities,
           std::int64_t batch_size) {
    if (std::any_of(units.begin(), units.end(), [](std::int64_t u) { return u < 0; }))
        throw BadData(path + " gives a rank less than nothing", "units below 0");
    if (units.size() != capacities.size())
        throw BadConfig(path + " is of " + std::to_string(units.size()) + " ranks",
                        "this job has " + std::to_string(capacities.size()),
                        "start as many, or use --balance auto");
    for (std::size_t r = 0; r < units.size(); ++r)
        if (units[r] > 0 && capacities[r] == 0)
            throw BadConfig(path + " gives rank " + std::to_string(r) + " work",
                            "its --max-sentences is 0",
                            "give it a capacity, or use --balance auto");
    const std::int64_t sum = std::accumulate(units.begin(), units.end(), std::int64_t{0});
    if (sum != batch_size)
        throw BadConfig(path + " cuts batches of " + std::to_string(sum) + " units",
                        "this job's have " + std::to_string(batch_size),
                        "give that --batch-size, or use --balance auto");
}

}  // namespace

bool AllocationLog::add(std::int64_t update, const std::vector<std::int64_t>& allocation) {
    const auto next = allocations_.upper_bound(update);
    const bool is_new = next == allocations_.begin() || std::prev(next)->second != allocation;
    if (is_new)
        allocations_[update] = allocation;
    if (path_.empty())
        return is_new;
    Json json{{"ranks", allocation.size()}, {"allocations", Json::array()}};
    for (const auto& [first, units] : allocations_)
        json["allocations"].push_back({{"update", first + 1}, {"units", units}});
    write_atomically(path_, json.dump() + "\n");
    return is_new;
}

AllocationsByUpdate read_allocations(const std::filesystem::path& path,
                                     const std::vector<std::int64_t>& capacities,
                                     std::int64_t batch_size) {
    std::ifstream file{path};
    if (!file)
        throw MissingInput("cannot read " + path.string(),
                           "--balance file: names allocations.json of a run",
                           "check the path");
    AllocationsByUpdate allocations;
    try {
        allocations = parse(Json::parse(file));
    } catch (const nlohmann::json::exception& error) {
        throw BadData(path.string() + " holds no allocations", error.what());
    }
    if (allocations.count(0) == 0)
        throw BadData(path.string() + " does not say how the first update is cut",
                      "no entry for update 1");
    for (const auto& [update, units] : allocations)
        check(units, path.string(), capacities, batch_size);
    return allocations;
}

}  // namespace hetseq
