#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/data/corpus_identity.hpp"
#include "hetseq/state/allocation_log.hpp"
#include "hetseq/state/evaluation.hpp"
#include "hetseq/state/layout_record.hpp"
#include "hetseq/state/loss_scale.hpp"

namespace hetseq {

/// The sums for the next log line.
struct MetricsWindow {
    std::int64_t updates = 0;
    std::int64_t finite_updates = 0;
    std::int64_t samples = 0;
    std::int64_t units = 0;
    std::vector<double> losses;  // sums over the finite updates, by term
    // Those of them whose batch had no weight in the term, by term; empty: there were none.
    std::vector<std::int64_t> weightless = {};
};

/// An update whose gradients are summed over all ranks and that is not applied yet: what it needs
/// beside these sums. The same on all ranks.
struct PendingUpdate {
    std::int64_t epoch = 0;  // counted from 0
    std::int64_t samples = 0;
    std::int64_t units = 0;
    bool is_full = true;  // a full batch
    bool ends_epoch = false;
    std::vector<std::int64_t> allocation = {};  // units by rank
    std::vector<double> losses = {};            // S_j / W_j, by term; 0 where W_j is 0
    std::vector<std::size_t> weightless = {};   // the terms of which W_j is 0
    double gradient_norm = 0;                   // of the summed gradients, without the scale
    double scale = 1;                           // what the sums were multiplied with
};

/// The progress of a run; the same on all ranks except for `costs`.
struct TrainingProgress {
    std::int64_t updates = 0;
    std::int64_t epochs = 0;   // complete ones
    std::int64_t samples = 0;  // of all ranks
    std::int64_t units = 0;
    std::int64_t skipped = 0;
    std::int64_t skips_in_a_row = 0;
    std::int64_t reallocations = 0;
    std::optional<LossScale::State> loss_scale;  // none: no rank computed in fp16
    std::optional<Evaluation> last_valid;
    std::int64_t last_valid_update = 0;
    std::optional<Evaluation> best_valid;
    std::int64_t best_update = 0;
    std::int64_t validations_since_best = 0;
    AllocationsByUpdate allocations;
    std::vector<StepCost> costs;  // by rank, as followed to the end; on rank 0 with balance auto
    ItemCost item_cost;           // what their units are, of samples of unequal length
    MetricsWindow window;
    std::vector<PendingUpdate> pending;  // the next ones, in order
    // The updates from which the order and the schedule count.
    std::int64_t order_origin = 0;
    std::int64_t schedule_origin = 0;
    std::int64_t schedule_epochs = 0;  // complete ones since the schedule's origin
};

/// The identity of a run. It stays the same from the first update to the last, on any devices.
struct RunIdentity {
    std::map<std::string, std::string> options = {};  // effective values
    std::int64_t schedule_updates = 0;                // updates the learning rate's schedule spans
    std::int64_t samples = 0;                         // of the corpus
    std::string corpus = {};                          // its datasets and their shapes
    std::optional<CorpusIdentity> data{};             // none in checkpoints of version 0.1
    std::optional<CorpusIdentity> valid_data{};       // none where there is no validation, too
    std::vector<std::string> devices = {};            // by rank, of the ranks that saved it
    std::vector<std::string> limits = {};             // by rank, what else its speed depends on
    std::optional<LayoutRecord> layout = {};          // none: no choice was asked for
};

/// Everything in a checkpoint except its tensors: state.json. It holds no clock times, so that
/// equal states have equal bytes.
struct TrainingState {
    static constexpr int format = 1;
    static constexpr const char* file_name = "state.json";

    RunIdentity run;
    TrainingProgress progress;
};

std::string training_state_json(const TrainingState& state);
/// `path` is named in errors. Throws BadData if it is not a state or has another format.
TrainingState parse_training_state(const std::string& text, const std::filesystem::path& path);

/// Reads the state of the checkpoint `folder`. Throws MissingInput or BadData.
TrainingState read_training_state(const std::filesystem::path& folder);

}  // namespace hetseq
