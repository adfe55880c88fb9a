#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace hetseq {

/// Devices of one class, which do the same in the same time.
struct ChainDevices {
    std::size_t count = 1;
    std::vector<double> forward_ms = {};   // by unit, one micro-batch
    std::vector<double> backward_ms = {};  // by unit, one micro-batch
    double memory_mb = 0;                  // that each device has for a stage [MiB]
    double process_mb = 0;                 // taken of it before there is a model [MiB]
    std::optional<std::size_t> host = {};  // number of the one that all are on; none: each is alone
                                           // on its own
    double message_ms_per_mb = 0;  // computing that messages to and from other stages keep it from
};

/// A message of n MiB takes latency_ms + n * ms_per_mb.
struct ChainLink {
    double latency_ms = 0;
    double ms_per_mb = 0;
};

/// Units [begin, end) on a device of a class.
struct ChainStage {
    std::size_t device_class = 0;
    std::size_t begin = 0, end = 0;

    auto operator<=>(const ChainStage&) const = default;
};

/// Parameters that several units read. Stages that have a copy each sum its gradients at the end of
/// an update. Two such stages send each other what is not zero of them, each when it is through.
struct TiedUnits {
    static constexpr double sent_whole_from = 0.75;  // of all: less is sent without zeros

    std::vector<std::size_t> units;
    double gradients_mb = 0;
    std::vector<double> filled = {};  // by unit: the part of the gradients that is not zero after
                                      // an update; empty: all

    /// The numbers of the stages that have a copy.
    std::vector<std::size_t> holders(std::span<const ChainStage> stages) const;
    /// The gradients that a stage sends where it is one of two [MiB].
    double sent_mb(const ChainStage& stage) const;
};

/// A chain of units that unlike devices are to train as a pipeline, stage by stage. Times are >= 0
/// and finite, and add up to less than 2^32 ms. Sizes are of one micro-batch [MiB].
struct ChainProblem {
    std::vector<ChainDevices> devices;          // by class
    std::vector<std::vector<ChainLink>> links;  // [from][to], by class, its own too
    std::vector<double> activations_mb;         // by unit: sent on, where a stage ends behind it
    std::vector<double> gradients_mb;           // by unit: sent back there; 0: no message
    std::vector<double> activations_mb_kept;    // by unit: held until its backward
    std::vector<double> workspace_mb;           // by unit: while it computes
    /// Parameters, gradients and the optimizer's state of the units [begin, end) [MiB]. Tied
    /// parameters count once in a stage.
    std::function<double(std::size_t begin, std::size_t end, std::size_t device_class)> state_mb;
    std::size_t micro_batches = 1;     // of an update, > 0
    std::vector<TiedUnits> tied = {};  // each set of units once

    std::size_t units() const noexcept { return activations_mb.size(); }
};

}  // namespace hetseq
