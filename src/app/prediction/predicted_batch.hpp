#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/prediction.hpp"

namespace hetseq {

/// What a model says of consecutive samples, on the CPU.
struct PredictedBatch {
    std::int64_t begin = 0;  // its first sample
    std::int64_t samples = 0;
    std::vector<Prediction> predictions;
    double seconds = 0;       // that it took
    bool ends_block = false;  // the last one of its block
};

/// As a message between ranks of one job, and back. Throws BadConfig for more than a message holds.
std::string to_bytes(const PredictedBatch& batch);
PredictedBatch predicted_from_bytes(const std::string& bytes);

}  // namespace hetseq
