#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "hetseq/comm/mailbox.hpp"
#include "hetseq/data/files/prediction_file.hpp"
#include "hetseq/data/loading/micro_batch.hpp"

#include "app/own_worker.hpp"
#include "predicted_batch.hpp"

namespace hetseq {

/// A batch of a block that was read.
struct BatchToPredict {
    MicroBatch batch;
    double read_s = 0;  // its part of the time to read the block
    bool ends_block = false;
};

/// Computes a batch's predictions, on whichever thread; throws what the model throws.
using Predict = std::function<PredictedBatch(BatchToPredict&)>;
/// Reads the batches of a block, in the rank's main thread.
using ReadBlock = std::function<std::vector<MicroBatch>(std::int64_t block)>;

using PredictionWorker = OwnWorker<BatchToPredict, PredictedBatch>;

/// Predicts on ranks other than 0 the blocks that rank 0 hands out, until it says that there is no
/// more. Returns this rank's error, or null.
std::exception_ptr serve_predictions(Mailbox& mailbox,
                                     const ReadBlock& read,
                                     const Predict& predict);

/// What rank 0 does, and how much each rank did.
struct PredictionWork {
    Mailbox& mailbox;
    PredictionWorker& own;
    ReadBlock read;
    std::int64_t blocks = 0;
    std::int64_t samples = 0;
    std::function<void(std::int64_t done)> progress;  // is called now and then
};

struct PredictionOutcome {
    std::exception_ptr failure;         // of rank 0; null if there is none
    std::vector<std::int64_t> samples;  // by rank
};

/// The whole job on rank 0: hands out blocks to ranks as they get free, itself included, and writes
/// what comes back to `file`. At the end, or after an error of any rank, the others are told and
/// have nothing on its way any more.
PredictionOutcome run_predictions(const PredictionWork& work, PredictionFile& file);

}  // namespace hetseq
