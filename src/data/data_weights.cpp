#include "hetseq/data/data_weights.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hetseq/util/error.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_parts_of_epoch = std::int64_t{1} << 22;  // 48 bytes each

double data_weight(const std::string& text) {
    const double weight = option_value::positive(text);
    if (weight > most_data_weight)
        option_value::reject(text, "at most " + format_number(most_data_weight));
    return weight;
}

// Each name stands for a shard at least.
std::int64_t names_of(const ShardSet& shards) {
    std::int64_t names = 0;
    for (const Shard& shard : shards.shards())
        names = std::max(names, shard.name + 1);
    return names;
}

void check_count(const ShardSet& shards, std::span<const double> weights) {
    const std::int64_t names = names_of(shards);
    if (std::ssize(weights) != names)
        throw BadConfig("--data-weights has " + count_text(std::ssize(weights), "weight"),
                        "--data has " + count_text(names, "name"),
                        "give one weight for each of the names, in their order");
}

std::int64_t samples_of_epoch(std::int64_t samples, double weight) {
    return std::max<std::int64_t>(std::llround(weight * static_cast<double>(samples)), 1);
}

// By name; neighbouring shards are one range.
std::vector<SampleSet> sets_of(const ShardSet& shards) {
    std::vector<SampleSet> sets(static_cast<std::size_t>(names_of(shards)));
    for (const Shard& shard : shards.shards()) {
        if (shard.samples() == 0)
            continue;
        std::vector<SampleRange>& ranges = sets[static_cast<std::size_t>(shard.name)].ranges;
        const SampleRange own{shard.offset, shard.offset + shard.samples()};
        if (!ranges.empty() && ranges.back().end == own.begin)
            ranges.back().end = own.end;
        else
            ranges.push_back(own);
    }
    return sets;
}

void check_size(std::span<const SampleSet> sets, std::int64_t block_length) {
    const std::int64_t parts = most_parts(sets, block_length);
    if (parts > most_parts_of_epoch)
        throw BadConfig("--data-weights makes an epoch of " + count_text(parts, "block"),
                        "its order is kept in memory, which takes at most " +
                            std::to_string(most_parts_of_epoch),
                        "divide all weights by the same number, or raise --block-length");
}

// What an epoch takes of a set.
struct SetPart {
    std::int64_t samples = 0;
    double units = 0;
};

std::vector<SetPart> set_parts(const ShardSet& shards, std::span<const double> weights) {
    const std::optional<std::size_t> field =
        find_field(shards.schema(), shards.schema().units_field);
    std::vector<SetPart> parts(weights.size());
    for (const Shard& shard : shards.shards()) {
        const auto set = static_cast<std::size_t>(shard.name);
        parts[set].samples += shard.samples();
        if (field)
            parts[set].units +=
                weights[set] * static_cast<double>(shard.header.datasets[*field].values);
    }
    for (std::size_t set = 0; set < parts.size(); ++set)
        if (parts[set].samples > 0)
            parts[set].samples = samples_of_epoch(parts[set].samples, weights[set]);
    return parts;
}

std::string share_text(double part, double whole) {
    return format_number(whole > 0 ? 100 * part / whole : 0, 3) + " %";
}

}  // namespace

std::vector<double> data_weights(const std::string& text) {
    std::vector<double> weights;
    if (!text.empty())
        for (const std::string& weight : split(text, ','))
            weights.push_back(data_weight(weight));
    return weights;
}

std::shared_ptr<const std::vector<SampleSet>> weighted_sets(const ShardSet& shards,
                                                            std::span<const double> weights,
                                                            std::int64_t block_length) {
    if (weights.empty())
        return nullptr;
    check_count(shards, weights);
    if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 1; }))
        return nullptr;
    std::vector<SampleSet> sets = sets_of(shards);
    for (std::size_t i = 0; i < sets.size(); ++i)
        sets[i].samples_of_epoch = samples_of_epoch(sets[i].samples(), weights[i]);
    std::erase_if(sets, [](const SampleSet& set) { return set.ranges.empty(); });
    check_size(sets, block_length);
    return std::make_shared<const std::vector<SampleSet>>(std::move(sets));
}

std::string data_weights_report(const ShardSet& shards,
                                std::span<const double> weights,
                                std::span<const std::string> names,
                                const std::string& units) {
    if (weights.empty())
        return "";
    const std::vector<SetPart> parts = set_parts(shards, weights);
    SetPart epoch;
    for (const SetPart& part : parts) {
        epoch.samples += part.samples;
        epoch.units += part.units;
    }
    std::vector<std::vector<std::string>> rows{{"data", "weight", "samples an epoch", ""}};
    const auto add = [&](const std::string& name, const std::string& weight, const SetPart& part) {
        rows.push_back(
            {name,
             weight,
             std::to_string(part.samples),
             share_text(static_cast<double>(part.samples), static_cast<double>(epoch.samples))});
        if (!units.empty()) {
            rows.back().push_back(std::to_string(std::llround(part.units)));
            rows.back().push_back(share_text(part.units, epoch.units));
        }
    };
    if (!units.empty())
        rows.front().insert(rows.front().end(), {units + " an epoch", ""});
    for (std::size_t i = 0; i < parts.size(); ++i)
        add(i < names.size() ? names[i] : "", format_number(weights[i]), parts[i]);
    add("all", "", epoch);
    return format_table(rows);
}

}  // namespace hetseq
