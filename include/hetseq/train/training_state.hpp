#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/train/allocation_log.hpp"
#include "hetseq/train/evaluation.hpp"

namespace hetseq {

/// What the next log line sums up already.
struct MetricsWindow {
    std::int64_t updates = 0;
    std::int64_t finite_updates = 0;
    std::int64_t samples = 0;
    std::int64_t units = 0;
    std::vector<double> losses;  // sums over the finite updates, by term
};

/// What a run has behind it; the same on all ranks but for `costs`.
struct TrainingProgress {
    std::int64_t updates = 0;
    std::int64_t epochs = 0;   // complete ones
    std::int64_t samples = 0;  // of all ranks
    std::int64_t units = 0;
    std::int64_t skipped = 0;
    std::int64_t skips_in_a_row = 0;
    std::int64_t reallocations = 0;
    std::optional<Evaluation> last_valid;
    std::optional<Evaluation> best_valid;
    std::int64_t best_update = 0;
    std::int64_t validations_since_best = 0;
    AllocationsByUpdate allocations;
    std::vector<StepCost> costs;  // by rank, as followed to the end; on rank 0 with balance auto
    MetricsWindow window;
    // Updates before those that the order, and the schedule, count from 0.
    std::int64_t order_origin = 0;
    std::int64_t schedule_origin = 0;
};

/// What a run is, from its first update to its last, whatever it runs on.
struct RunIdentity {
    std::map<std::string, std::string> options;  // effective values
    std::int64_t schedule_updates = 0;           // updates the learning rate's schedule spans
    std::int64_t samples = 0;                    // of the corpus
    std::string corpus;                          // what the corpus holds, as a checksum
    std::vector<std::string> devices;            // by rank, of the ranks that saved it
    std::vector<std::string> limits;             // by rank, what else its speed depends on
};

/// All of a checkpoint but its tensors: state.json. Holds no clock's times, so that equal states
/// have equal bytes.
struct TrainingState {
    static constexpr int format = 1;
    static constexpr const char* file_name = "state.json";

    RunIdentity run;
    TrainingProgress progress;
};

std::string training_state_json(const TrainingState& state);
/// `path` is named in errors. Throws BadData: no state, or one of another format.
TrainingState parse_training_state(const std::string& text, const std::filesystem::path& path);

/// That of the checkpoint `folder`. Throws MissingInput or BadData.
TrainingState read_training_state(const std::filesystem::path& folder);

}  // namespace hetseq
