#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/model/decoding/beam_search.hpp"

namespace hetseq {

/// What one batch may hold.
struct BatchCaps {
    std::int64_t sentences = 64;
    std::int64_t tokens = 4096;  // of the sources; a longer one is a batch by itself
};

/// Batches of sentences with these lengths, as indices: longest first, equal ones in their order.
/// A function of its arguments alone.
std::vector<std::vector<std::size_t>> cut_batches(const std::vector<std::int64_t>& lengths,
                                                  const BatchCaps& caps);

/// Work that goes to a rank.
struct TranslationBatch {
    std::int64_t number = 0;
    std::vector<std::vector<std::int32_t>> sources;
};

/// What comes back.
struct TranslatedBatch {
    std::int64_t number = 0;
    std::vector<std::vector<Hypothesis>> translations;  // by source
};

/// As messages between ranks of one job, and back.
std::string to_bytes(const TranslationBatch& batch);
std::string to_bytes(const TranslatedBatch& batch);
TranslationBatch batch_from_bytes(const std::string& bytes);
TranslatedBatch translated_from_bytes(const std::string& bytes);

}  // namespace hetseq
