#include "hetseq/train/shares/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"

#include "train/normalised_loss.hpp"
#include "train/out_of_memory.hpp"

#include "hetseq/balance/fit_step_cost.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/compute_timer.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/update_status.hpp"

namespace hetseq {

namespace {

// A measurement is the mean over a block of passes of at least this long: shorter ones would fall
// between the pauses that a CPU quota imposes.
constexpr double block_ms = 50;
constexpr std::size_t least_blocks = 3;
constexpr double shortest_pass_ms = 1e-3;
constexpr double precise = 0.01;  // standard error of the largest size's time
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

// Samples that a rank is measured with, in one or two micro-batches.
struct Size {
    std::size_t share = 0;
    std::int64_t micro_batches = 1;
    double pass_ms = 0;  // the last time known
    std::vector<double> blocks_ms = {};
};

// The standard error of the mean, relative to it; infinite if there are too few values to tell.
double standard_error(const std::vector<double>& values) {
    if (values.size() < least_blocks)
        return std::numeric_limits<double>::infinity();
    const auto count = static_cast<double>(values.size());
    double sum = 0, squares = 0;
    for (const double value : values)
        sum += value;
    for (const double value : values)
        squares += std::pow(value - sum / count, 2);
    return std::sqrt(squares / (count - 1) / count) / (sum / count);
}

// First every size once, from the smallest on: what is new (memory, kernels chosen) is slow, and on
// a GPU memory shows by trying. Then in rounds, each size once, the largest first, for it is what
// most of an update is made of.
class Calibrator {
public:
    Calibrator(Model& model,
               const FlatParameters& parameters,
               std::vector<LoadedShare> shares,
               const CalibrationOptions& options)
        : model_{model},
          status_{model.loss_terms().size(), parameters.values().device()},
          shares_{std::move(shares)},
          options_{options},
          timer_{parameters.values().device()} {}

    /// At the smallest size; samples a millisecond.
    double first_look() {
        peak_.reset();
        note_memory(0);
        try_size(0);
        measure_block(0);
        return static_cast<double>(samples(sizes_.front())) / sizes_.front().pass_ms;
    }

    /// At all sizes, while memory and time last. `update_ms`: what an update will take about.
    void measure(double update_ms) {
        begin_ = std::chrono::steady_clock::now();
        const double soft_ms = 1000 * options_.seconds;
        const double limit_ms = std::max(soft_ms, options_.updates * update_ms);
        for (std::size_t i = 1; i < shares_.size() && !full_; ++i)
            if (samples(i) > samples(sizes_.back()) && samples(i) <= memory_limit() &&
                elapsed_ms() + 2 * expected_ms(i) < limit_ms)
                try_size(i);
        std::reverse(sizes_.begin(), sizes_.end());
        add_halved();
        // Every size once within the limit, but for the halved one, and again within the seconds.
        bool measured = true;
        while (measured && standard_error(sizes_.front().blocks_ms) > precise) {
            measured = false;
            for (std::size_t i = 0; i < sizes_.size(); ++i) {
                const bool is_due = sizes_[i].blocks_ms.empty() && sizes_[i].micro_batches == 1;
                const double left_ms = (is_due ? limit_ms : soft_ms) - elapsed_ms();
                if (std::max(block_ms, sizes_[i].pass_ms) < left_ms) {
                    measure_block(i);
                    measured = true;
                }
            }
        }
    }

    /// The cost with micro-batches of at most `capacity`.
    StepCost cost(std::int64_t capacity) const {
        std::vector<StepSample> points;
        for (const Size& size : sizes_)
            for (const double ms : size.blocks_ms)
                points.push_back({static_cast<double>(samples(size)), size.micro_batches, ms});
        return fit_step_cost(
            points, std::min(capacity, memory_limit()), std::numeric_limits<std::int64_t>::max());
    }

private:
    std::int64_t samples(std::size_t share) const { return shares_[share].samples(); }
    std::int64_t samples(const Size& size) const { return samples(size.share); }
    double elapsed_ms() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
            .count();
    }
    // A pass of a larger share, by the largest tried so far.
    double expected_ms(std::size_t share) const {
        return sizes_.back().pass_ms * static_cast<double>(samples(share)) /
               static_cast<double>(samples(sizes_.back()));
    }

    double forward_backward_ms(const LoadedShare& share) {
        timer_.begin();
        for (const MicroBatch& micro_batch : share.micro_batches()) {
            const at::Tensor loss =
                normalised_loss(model_.forward(micro_batch, {}), share.weights(), status_);
            if (loss.defined())
                loss.backward();
        }
        timer_.end();
        activity::progress();
        return std::max(timer_.ms(), shortest_pass_ms);
    }

    void try_size(std::size_t share) {
        peak_.reset();
        sizes_.push_back({.share = share});
        within_memory(share, [&] {
            sizes_.back().pass_ms = forward_backward_ms(shares_[share]);
            note_memory(samples(share));
        });
    }

    // If memory does not hold the share, neither it nor any larger one is measured.
    template <class Function>
    void within_memory(std::size_t share, Function&& function) {
        try {
            function();
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
            full_ = true;
            std::erase_if(sizes_, [&](const Size& size) { return size.share >= share; });
            if (sizes_.empty())
                throw DeviceError("calibration ran out of memory",
                                  error.what(),
                                  "lower --max-sentences on this rank, or give it 0");
        }
    }

    void add_halved() {
        Size halved = sizes_.front();
        if (samples(halved) < 2)
            return;
        halved.micro_batches = 2;
        halved.blocks_ms.clear();
        sizes_.push_back(halved);
    }

    void measure_block(std::size_t index) {
        LoadedShare& share = shares_[sizes_[index].share];
        within_memory(sizes_[index].share, [&] {
            Size& size = sizes_[index];
            if (std::cmp_not_equal(share.micro_batches().size(), size.micro_batches))
                share.recut((share.samples() + size.micro_batches - 1) / size.micro_batches);
            int passes = 0;
            double total_ms = 0;
            for (; total_ms < block_ms; ++passes)
                total_ms += forward_backward_ms(share);
            size.pass_ms = total_ms / passes;
            size.blocks_ms.push_back(size.pass_ms);
        });
    }

    void note_memory(std::int64_t samples) {
        const double mb = peak_.mb();
        if (samples > peak_samples_)
            mb_per_sample_ =
                std::max(0.0, (mb - peak_mb_) / static_cast<double>(samples - peak_samples_));
        peak_samples_ = samples;
        peak_mb_ = mb;
    }

    std::int64_t memory_limit() const {
        if (full_) {
            std::int64_t most = 0;
            for (const Size& size : sizes_)
                most = std::max(most, samples(size));
            return most;
        }
        if (options_.memory_mb == 0 || mb_per_sample_ == 0)
            return std::numeric_limits<std::int64_t>::max();
        const double free_mb = memory_part * static_cast<double>(options_.memory_mb) - peak_mb_;
        return std::max<std::int64_t>(
            1, peak_samples_ + static_cast<std::int64_t>(std::floor(free_mb / mb_per_sample_)));
    }

    Model& model_;
    UpdateStatus status_;  // what the losses are added to, as in training
    std::vector<LoadedShare> shares_;
    CalibrationOptions options_;
    ComputeTimer timer_;
    std::chrono::steady_clock::time_point begin_;
    std::vector<Size> sizes_;  // that fit, in the order in which they are measured
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

// All of them, whatever fails: the other ranks read them with this one.
std::vector<LoadedShare> take_shares(const HostComm& world, Loader& loader) {
    std::vector<LoadedShare> shares;
    std::exception_ptr failure;
    while (loader.outstanding() > 0) {
        try {
            shares.push_back(loader.take());
        } catch (...) {
            failure = failure ? failure : std::current_exception();
        }
    }
    agree(world, failure);
    return shares;
}

}  // namespace

StepCost calibrate(const HostComm& world,
                   Model& model,
                   FlatParameters& parameters,
                   Loader& loader,
                   const BatchPlan& plan,
                   std::span<const std::int64_t> capacities,
                   const std::optional<StepCost>& known,
                   const CalibrationOptions& options) {
    const std::int64_t capacity = capacities[static_cast<std::size_t>(world.rank())];
    const bool measures = !known && capacity > 0;
    const KeepGenerator keep{parameters.values().device()};
    request_shares(loader, plan, capacities, world.rank());
    Calibrator calibrator{model, parameters, take_shares(world, loader), options};
    const double rate = agree_on(world, [&] {
        return measures ? calibrator.first_look()
                        : known.value_or(StepCost{.micro_batch = 0}).rate();
    });
    const double rates = world.all_reduce(rate, ReduceOp::sum);
    agree_on(world, [&] {
        if (measures)
            calibrator.measure(static_cast<double>(plan.batch(0).size()) / rates);
    });
    parameters.zero_gradients();
    if (known)
        return *known;
    return measures ? calibrator.cost(capacity) : StepCost{.micro_batch = 0};
}

}  // namespace hetseq
