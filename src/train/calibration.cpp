#include "hetseq/train/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>
#include <string>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/balance/fit_step_cost.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/compute_timer.hpp"
#include "hetseq/train/normalised_loss.hpp"
#include "hetseq/train/out_of_memory.hpp"
#include "hetseq/train/peak_memory.hpp"

namespace hetseq {

namespace {

// A measurement is the mean over a block of repeats of at least this long: shorter ones would fall
// between the pauses that a CPU quota imposes.
constexpr double block_ms = 50;
constexpr double enough_ms = 150;  // measured at one size, in blocks
constexpr double long_ms = 300;    // of a pass
constexpr double memory_part = 0.9;

// Sizes that a rank is measured at, ascending; as many for every rank, since all request the same
// number of shares.
constexpr std::int64_t size_divisors[] = {8, 4, 2, 1};

std::int64_t size_at(std::int64_t divisor, std::int64_t capacity, std::int64_t samples) {
    return std::min(samples, (capacity + divisor - 1) / divisor);
}

// Restores the state of the device's generator, which users' own models may draw from.
class KeepGenerator {
public:
    explicit KeepGenerator(at::Device device)
        : generator_{at::globalContext().defaultGenerator(device)},
          state_{generator_.get_state()} {}
    ~KeepGenerator() { generator_.set_state(state_); }
    KeepGenerator(const KeepGenerator&) = delete;
    KeepGenerator& operator=(const KeepGenerator&) = delete;

private:
    at::Generator generator_;
    at::Tensor state_;
};

class Calibrator {
public:
    Calibrator(Model& model, FlatParameters& parameters, const CalibrationOptions& options)
        : model_{model},
          parameters_{parameters},
          options_{options},
          timer_{parameters.values().device()},
          begin_{std::chrono::steady_clock::now()} {}

    /// Measures at the share's size, while time and memory last.
    void measure(LoadedShare& share) {
        if (full_ || share.samples() == 0 || share.samples() == largest_ || is_plain() ||
            expected_ms(share.samples()) > left_ms())
            return;
        ++sizes_;
        try {
            peak_.reset();
            measure(share, 1);
            note_memory(share.samples());
            if (share.samples() >= 2 && !halved_ && expected_ms(2 * share.samples()) < left_ms()) {
                halved_ = true;
                share.recut((share.samples() + 1) / 2);
                measure(share, 2);
            }
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
            run_full(error);
        }
    }

    /// The cost with micro-batches of at most `capacity`.
    StepCost cost(std::int64_t capacity) const {
        return fit_step_cost(
            samples_, std::min(capacity, memory_limit()), std::numeric_limits<std::int64_t>::max());
    }

private:
    // On a CPU two sizes and a long pass make the line: training is not kept waiting for more. A
    // GPU's memory shows only by trying.
    bool is_plain() const {
        return parameters_.values().is_cpu() && sizes_ >= 2 && largest_ms_ >= long_ms;
    }
    double elapsed_ms() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
            .count();
    }
    double left_ms() const { return 1000 * options_.seconds - elapsed_ms(); }

    // Twice, by the last size's time: once to warm up.
    double expected_ms(std::int64_t samples) const {
        return largest_ == 0
                   ? 0
                   : 2 * largest_ms_ * static_cast<double>(samples) / static_cast<double>(largest_);
    }

    double forward_backward_ms(const LoadedShare& share) {
        timer_.begin();
        for (const MicroBatch& micro_batch : share.micro_batches()) {
            const at::Tensor loss = normalised_loss(
                model_.forward(micro_batch, {}), share.weights(), parameters_.status());
            if (loss.defined())
                loss.backward();
        }
        timer_.end();
        return timer_.ms();
    }

    // Long passes count from the first one on, but for the process's very first.
    void measure(const LoadedShare& share, std::int64_t micro_batches) {
        const bool is_first = largest_ == 0;
        double last_ms = forward_backward_ms(share);
        const int repeats = std::max(1, static_cast<int>(std::ceil(block_ms / last_ms)));
        double measured_ms = 0;
        if (!is_first && last_ms >= enough_ms)
            measured_ms = add_sample(share, micro_batches, last_ms);
        while (measured_ms < enough_ms && repeats * last_ms < left_ms()) {
            double total_ms = 0;
            for (int i = 0; i < repeats; ++i)
                total_ms += forward_backward_ms(share);
            last_ms = total_ms / repeats;
            add_sample(share, micro_batches, last_ms);
            measured_ms += total_ms;
        }
        if (measured_ms == 0)  // no time for more than what should have warmed up
            add_sample(share, micro_batches, last_ms);
        if (micro_batches == 1) {
            largest_ = share.samples();
            largest_ms_ = last_ms;
        }
    }

    double add_sample(const LoadedShare& share, std::int64_t micro_batches, double ms) {
        samples_.push_back({static_cast<double>(share.samples()), micro_batches, ms});
        return ms;
    }

    void note_memory(std::int64_t samples) {
        const double mb = peak_.mb();
        if (samples > peak_samples_ && peak_samples_ > 0)
            mb_per_sample_ =
                std::max(0.0, (mb - peak_mb_) / static_cast<double>(samples - peak_samples_));
        peak_samples_ = samples;
        peak_mb_ = mb;
    }

    // Nothing larger than the last size that went through.
    void run_full(const std::exception& error) {
        if (largest_ == 0)
            throw DeviceError("calibration ran out of memory",
                              error.what(),
                              "lower --max-sentences on this rank, or give it 0");
        full_ = true;
    }

    std::int64_t memory_limit() const {
        if (full_)
            return largest_;
        if (options_.memory_mb == 0 || mb_per_sample_ == 0)
            return std::numeric_limits<std::int64_t>::max();
        const double free_mb = memory_part * static_cast<double>(options_.memory_mb) - peak_mb_;
        return std::max<std::int64_t>(
            1, peak_samples_ + static_cast<std::int64_t>(std::floor(free_mb / mb_per_sample_)));
    }

    Model& model_;
    FlatParameters& parameters_;
    CalibrationOptions options_;
    ComputeTimer timer_;
    std::chrono::steady_clock::time_point begin_;
    std::vector<StepSample> samples_;
    std::int64_t largest_ = 0;  // size measured last, and its time
    double largest_ms_ = 0;
    int sizes_ = 0;
    bool halved_ = false;
    bool full_ = false;
    PeakMemory peak_;
    std::int64_t peak_samples_ = 0;
    double peak_mb_ = 0, mb_per_sample_ = 0;
};

void request_shares(Loader& loader,
                    const BatchPlan& plan,
                    std::span<const std::int64_t> capacities,
                    int rank) {
    const std::int64_t samples = plan.batch(0).size();
    for (const std::int64_t divisor : size_divisors) {
        std::vector<Slice> slices;
        std::int64_t end = 0;
        for (const std::int64_t capacity : capacities) {
            slices.push_back({0, size_at(divisor, capacity, samples)});
            end = std::max(end, slices.back().end);
        }
        const std::int64_t own = slices[static_cast<std::size_t>(rank)].size();
        loader.request({.begin = 0, .end = end}, slices, own);
    }
}

}  // namespace

StepCost calibrate(const HostComm& world,
                   Model& model,
                   FlatParameters& parameters,
                   Loader& loader,
                   const BatchPlan& plan,
                   std::span<const std::int64_t> capacities,
                   bool measure,
                   const CalibrationOptions& options) {
    const std::int64_t capacity = capacities[static_cast<std::size_t>(world.rank())];
    const KeepGenerator keep{parameters.values().device()};
    request_shares(loader, plan, capacities, world.rank());
    Calibrator calibrator{model, parameters, options};
    // A failure waits until all shares are taken: the other ranks read them with this one.
    std::exception_ptr failure;
    while (loader.outstanding() > 0) {
        try {
            LoadedShare share = loader.take();
            if (measure && capacity > 0 && !failure)
                calibrator.measure(share);
        } catch (...) {
            failure = failure ? failure : std::current_exception();
        }
    }
    parameters.zero_gradients();
    agree(world, failure);
    if (!measure)
        return {};
    return capacity > 0 ? calibrator.cost(capacity) : StepCost{.micro_batch = 0};
}

}  // namespace hetseq
