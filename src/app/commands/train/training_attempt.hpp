#pragma once

#include <optional>

#include "crew.hpp"

namespace hetseq {

/// An attempt to train came to its end, or is to be made again by some of its ranks.
struct Attempt {
    int code = 0;
    std::optional<SmallerCrew> smaller = {};
};

/// Collective. The ranks of `crew` train from the newest checkpoint that fits, or from the start,
/// or try what they would do (--dry-run). `start_seconds`: of the process.
Attempt try_to_train(const CommandContext& context, Crew crew, double start_seconds);

}  // namespace hetseq
