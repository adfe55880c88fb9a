#pragma once

#include <cstdint>

#include "hetseq/model/decoding/step_decoder.hpp"

#include "packed_linear.hpp"

namespace hetseq::detail {

/// Symbols that a rule treats apart.
struct RuleSymbols {
    std::int32_t unknown = 0;
    std::int32_t end = 2;
};

/// The candidates of `rows` decoder outputs x (rows, width, in whole groups) by the output layer.
/// The vocabulary goes by in pieces that stay in the cache; all its scores are never held at once.
template <class T>
void scan_vocabulary(const PackedLinear<T>& output,
                     const T* x,
                     std::int64_t rows,
                     const CandidateRule& rule,
                     const RuleSymbols& symbols,
                     Candidates& candidates);

}  // namespace hetseq::detail
