#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Generator.h>

#include "hetseq/balance/fit_step_cost.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/train/compute_timer.hpp"
#include "hetseq/train/shares/calibration.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/update_status.hpp"

namespace hetseq {

class FlatParameters;
class HostComm;
class Model;

/// Restores the state of the device's generator, which users' own models may draw from.
class KeepGenerator {
public:
    explicit KeepGenerator(at::Device device);
    ~KeepGenerator() { generator_.set_state(state_); }
    KeepGenerator(const KeepGenerator&) = delete;
    KeepGenerator& operator=(const KeepGenerator&) = delete;

private:
    at::Generator generator_;
    at::Tensor state_;
};

/// Measures forward and backward of shares on this rank's device. First every size once, from the
/// smallest on: what is new (memory, kernels chosen) is slow, and on a GPU memory shows by trying.
/// Then in rounds, each size once, the largest first, for it is what most of an update is made of.
/// A share's size is its samples, or its padded tokens where samples have unequal lengths.
class Calibrator {
public:
    /// `shares`: one micro-batch each, of ascending sizes; from `others` on of any sizes up to the
    /// largest.
    Calibrator(Model& model,
               const FlatParameters& parameters,
               std::vector<LoadedShare> shares,
               std::size_t others,
               const CalibrationOptions& options);

    /// At the smallest size; samples a millisecond.
    double first_look();
    /// At all sizes, while memory and time last. `update_ms`: what an update will take about.
    /// Leaves the model's layers recomputed where that is allowed and faster.
    void measure(double update_ms);
    /// The largest size that memory holds.
    std::int64_t memory_limit() const;
    /// Adds to `cost` what else was measured: the layers that are recomputed, forward's part of the
    /// time, and the memory that a micro-batch of this size takes.
    void describe(StepCost& cost, std::int64_t micro_batch) const;

    /// A share that was measured, in one or two micro-batches.
    struct Size {
        std::size_t share = 0;
        std::int64_t micro_batches = 1;
        double pass_ms = 0;  // the last time known
        std::vector<double> blocks_ms = {};
    };
    const std::vector<Size>& sizes() const noexcept { return found_.sizes; }
    const LoadedShare& share(const Size& size) const { return shares_[size.share]; }

private:
    /// What was found out while the model's layers are recomputed, or are not.
    struct Found {
        std::vector<Size> sizes = {};  // that fit, in the order in which they are measured
        bool is_full = false;          // memory did not hold the next
        std::int64_t peak_size = 0;
        double peak_mb = 0, mb_per_unit = 0;
        double base_mb = 0;                    // before the first pass
        double forward_ms = 0, passes_ms = 0;  // of passes of one micro-batch
    };

    bool can_recompute() const;
    void recompute(std::int64_t layers);
    bool holds_all() const;
    double largest_rate() const;
    void measure_sizes(double update_ms);
    std::int64_t size_of(std::size_t share) const;
    std::int64_t size_of(const Size& size) const { return size_of(size.share); }
    double elapsed_ms() const;
    double expected_ms(std::size_t share) const;
    double forward_backward_ms(const LoadedShare& share);
    void try_size(std::size_t share);
    template <class Function>
    void within_memory(std::size_t share, Function&& function);
    void add_halved();
    void measure_block(std::size_t index);
    void note_memory(std::int64_t size);
    double activations_mb(std::int64_t size) const;

    Model& model_;
    at::Tensor gradients_;
    UpdateStatus status_;  // what the losses are added to, as in training
    std::vector<LoadedShare> shares_;
    std::size_t others_;
    CalibrationOptions options_;
    ComputeTimer timer_, forward_timer_;
    std::chrono::steady_clock::time_point begin_;
    Found found_;
    PeakMemory peak_;
};

/// Collective. All outstanding shares, whatever fails: the other ranks read them with this one.
std::vector<LoadedShare> take_shares(const HostComm& world, Loader& loader);

}  // namespace hetseq
