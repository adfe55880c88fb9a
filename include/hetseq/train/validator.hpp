#pragma once

#include <cstdint>

#include "hetseq/data/order/micro_batch_cap.hpp"
#include "hetseq/train/validation/best_by.hpp"

namespace hetseq {

class BatchPlan;
class Evaluator;
class HostComm;
class Model;
class Recorder;
class RunFolder;
struct CheckpointFile;
struct TrainingProgress;

/// All outlive the validator.
struct ValidatorParts {
    const HostComm& world;
    const BatchPlan& plan;
    const Model& model;
    Recorder& recorder;
    Evaluator* evaluator = nullptr;              // null: no validation
    const RunFolder* folder = nullptr;           // null: the best model is not kept
    const CheckpointFile* held_model = nullptr;  // the file of a model that no rank holds whole
};

struct ValidatorOptions {
    std::int64_t interval = 0;  // updates; 0: epochs
    std::int64_t patience = 0;  // validations without a better one, that end the run; 0: none do
    BestBy best_by = {};
    std::int64_t updates = 0;  // of the run, behind whose last one there is a validation
};

/// Validates a model in training, and keeps the best one.
class Validator {
public:
    Validator(const ValidatorParts& parts, const ValidatorOptions& options)
        : parts_{parts}, options_{options} {}

    /// After `update`, whose batch is `position` in the order of batches, both counted from 0.
    bool is_due_after(std::int64_t update, std::int64_t position) const;

    /// Collective. Validates after `progress.updates` updates, in the epoch `epoch`, counted from
    /// 1, and notes it in `progress`. `most`: of a micro-batch of this rank. Returns true if
    /// patience is at its end.
    bool run(std::int64_t epoch, const MicroBatchCap& most, TrainingProgress& progress);

private:
    void keep_best_model();

    ValidatorParts parts_;
    ValidatorOptions options_;
};

}  // namespace hetseq
