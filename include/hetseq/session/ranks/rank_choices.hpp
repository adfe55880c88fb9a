#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "hetseq/util/precision.hpp"
#include "hetseq/comm/host/topology.hpp"

// The values that options by rank have for one rank.
namespace hetseq {

/// --precision gives a rank this. No value means what the device does best.
using PrecisionChoice = std::optional<Precision>;

/// --recompute gives a rank a number of layers that backward computes again. No value means that
/// memory decides.
using RecomputeChoice = std::optional<std::int64_t>;
/// All that a model has.
inline constexpr std::int64_t all_layers = std::numeric_limits<std::int64_t>::max();

/// --shard-by gives a rank its part of what is cut.
struct ShardPart {
    enum class By { memory, even, number };

    By by = By::memory;
    std::int64_t number = 0;  // where it is by number

    bool operator==(const ShardPart&) const = default;
};

/// As the options are written: "auto", "bf16", "all", "3".
std::string choice_text(std::int64_t number);
std::string choice_text(DeviceChoice choice);
std::string choice_text(const PrecisionChoice& choice);
std::string choice_text(const RecomputeChoice& choice);
std::string choice_text(const ShardPart& part);

}  // namespace hetseq
