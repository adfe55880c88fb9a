#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/model/decoding/beam_search.hpp"

#include "app/lines/length_batches.hpp"

namespace hetseq {

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
