#pragma once

#include <cstdint>
#include <functional>

namespace hetseq {

/// Told while text is prepared, on rank 0: how much of the text is done, and all of it [bytes].
using PrepareProgress = std::function<void(std::int64_t done, std::int64_t total)>;

}  // namespace hetseq
