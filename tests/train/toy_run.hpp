#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/train/trainer.hpp"
#include "hetseq/train/validation/evaluator.hpp"

namespace hetseq {
class FlatParameters;
class HostComm;
class MpiEnvironment;
class Optimizer;
class RunFolder;
}  // namespace hetseq

namespace hetseq::test {

constexpr std::uint64_t toy_seed = 11;

/// Everything that a training run of the toy model depends on.
struct ToyRun {
    std::string data;
    std::vector<std::int64_t> capacities{4};  // by rank
    std::string balance = "declared";
    std::int64_t batch_size = 12;
    std::int64_t updates = 10;
    double dropout = 0;
    at::ScalarType dtype = at::kDouble;
    std::string optimizer = "adam";  // or another, or "full": out of memory
    double lr = 1e-3;
    double clip_norm = 0;
    std::int64_t bucket_bytes = 256;
    std::vector<std::int64_t> shards = {};  // parts of the state by rank; empty: it is not cut
    std::int64_t stretch = 1;               // see ToyModel
    bool validate = false;
    bool follow = false;
    AllocationsByUpdate replay = {};
    std::int64_t valid_interval = 0;
    std::int64_t max_skips = 100;
    std::int64_t check_interval = 0;
    DriftPolicy drift = DriftPolicy::warn;
    std::int64_t corrupted_update = -1;  // in which the last rank's parameters change by themselves
    double corruption = 0.25;            // by this
    at::Device device = at::kCPU;
    const RunFolder* folder = nullptr;
    bool saves = false;             // checkpoints, into `folder`; all stay
    RunControl* control = nullptr;  // as in TrainerParts
    BestBy best_by = {};
    std::int64_t stop_after = 0;
    std::int64_t staleness = 0;
    std::int64_t save_interval = 0;  // updates between checkpoints
    std::string from = {};           // a checkpoint's folder, to go on from, tensors and all
    std::int64_t patience = 0;
    CheckpointPaceOptions pace = {.every_s = 0};
    TrainingProgress progress = {};  // of a run that is continued, but for its tensors
    LossScale loss_scale = {};
    std::int64_t held_update = -1;
    std::vector<std::size_t> weightless = {};  // terms in which no sample has weight
    bool tells = false;                        // in the log, by rank 0
    Schedule schedule = {};                    // empty: `lr` all along
    /// See ToyModel::sum_ids; null: nothing is summed beside gradients.
    std::function<void(double)> take_ids = {};
    /// See ToyModel::Spoil.
    std::function<void(const MicroBatch&, const ForwardContext&, ForwardResult& result)> spoil{};
};

struct ToyResult {
    at::Tensor parameters;       // flat
    at::Tensor gradients;        // of the last update, flat
    std::vector<double> losses;  // of the last update, by term
    TrainerReport report;
};

/// That of `run.optimizer`.
std::unique_ptr<Optimizer> make_toy_optimizer(FlatParameters& parameters, const ToyRun& run);

/// Collective over `world`: the same run on as many ranks as it has.
ToyResult train_toy(const MpiEnvironment& environment, const HostComm& world, const ToyRun& run);

/// Collective. Writes a corpus of `samples` rows of 6 tokens and a label, in two shards, by
/// formula. The label of `bad_sample`, if that is one, is out of bounds. Returns the folder.
std::string write_toy_corpus(const HostComm& world,
                             std::int64_t samples,
                             std::int64_t bad_sample = -1);
/// Collective.
void remove_toy_corpus(const HostComm& world, const std::string& folder);

}  // namespace hetseq::test
