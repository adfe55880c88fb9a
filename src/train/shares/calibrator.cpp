#include "calibrator.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"

#include "train/normalised_loss.hpp"
#include "train/out_of_memory.hpp"

namespace hetseq {

namespace {

// A measurement is the mean over a block of passes of at least this long: shorter ones would fall
// between the pauses that a CPU quota imposes.
constexpr double block_ms = 50;
constexpr std::size_t least_blocks = 3;
constexpr double shortest_pass_ms = 1e-3;
constexpr double precise = 0.01;  // standard error of the largest size's time

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

}  // namespace

KeepGenerator::KeepGenerator(at::Device device)
    : generator_{at::globalContext().defaultGenerator(device)}, state_{generator_.get_state()} {}

Calibrator::Calibrator(Model& model,
                       const FlatParameters& parameters,
                       std::vector<LoadedShare> shares,
                       std::size_t others,
                       const CalibrationOptions& options)
    : model_{model},
      gradients_{parameters.gradients()},
      status_{model.loss_terms().size(), parameters.values().device()},
      shares_{std::move(shares)},
      others_{others},
      options_{options},
      timer_{parameters.values().device()},
      forward_timer_{parameters.values().device()},
      peak_{parameters.values().device()} {}

bool Calibrator::can_recompute() const {
    return options_.may_recompute && model_.recomputed_layers() < model_.recomputable_layers();
}

// Shares are whole again, and memory as it was before.
void Calibrator::recompute(std::int64_t layers) {
    model_.recompute(layers);
    PeakMemory::release();
    for (LoadedShare& share : shares_)
        share.recut({});
}

double Calibrator::first_look() {
    gradients_.zero_();  // or its pages would count as activations
    peak_.reset();
    note_memory(0);
    found_.base_mb = found_.peak_mb;
    try {
        try_size(0);
    } catch (const DeviceError&) {
        if (!can_recompute())
            throw;
        recompute(model_.recomputable_layers());
        found_ = {};
        return first_look();
    }
    measure_block(0);
    return static_cast<double>(shares_.front().samples()) / found_.sizes.front().pass_ms;
}

void Calibrator::measure(double update_ms) {
    measure_sizes(update_ms);
    if (holds_all() || !can_recompute())
        return;
    const double rate = largest_rate();
    Found without = std::exchange(found_, {});
    recompute(model_.recomputable_layers());
    first_look();
    measure_sizes(update_ms);
    if (largest_rate() > rate)
        return;
    recompute(0);
    found_ = std::move(without);
}

// The largest share, of one micro-batch.
bool Calibrator::holds_all() const {
    return size_of(others_ - 1) <= memory_limit();
}

// Units a millisecond in the largest micro-batches that memory holds.
double Calibrator::largest_rate() const {
    const Size& largest = found_.sizes.front();
    std::vector<double> times = largest.blocks_ms;
    times.push_back(largest.pass_ms);
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    return static_cast<double>(size_of(largest)) / *middle;
}

void Calibrator::measure_sizes(double update_ms) {
    begin_ = std::chrono::steady_clock::now();
    const double soft_ms = 1000 * options_.seconds;
    const double limit_ms = std::max(soft_ms, options_.updates * update_ms);
    const auto is_time_for = [&](std::size_t share) {
        return size_of(share) <= memory_limit() && elapsed_ms() + 2 * expected_ms(share) < limit_ms;
    };
    for (std::size_t i = 1; i < others_ && !found_.is_full; ++i)
        if (size_of(i) > size_of(found_.sizes.back()) && is_time_for(i))
            try_size(i);
    std::reverse(found_.sizes.begin(), found_.sizes.end());
    add_halved();
    for (std::size_t i = others_; i < shares_.size() && !found_.is_full; ++i)
        if (shares_[i].samples() > 0 && is_time_for(i))
            try_size(i);
    // Within the limit every size once, but for the halved one, and the largest as often as tells
    // an error: a slow rank has no time for that in the seconds, and a single stall would be half
    // of its cost. Within the seconds all of them again.
    const auto is_due = [&](std::size_t i) {
        const std::size_t wanted = i == 0 ? least_blocks : 1;
        return found_.sizes[i].micro_batches == 1 && found_.sizes[i].blocks_ms.size() < wanted;
    };
    bool measured = true;
    while (measured && standard_error(found_.sizes.front().blocks_ms) > precise) {
        measured = false;
        for (std::size_t i = 0; i < found_.sizes.size(); ++i) {
            const double left_ms = (is_due(i) ? limit_ms : soft_ms) - elapsed_ms();
            if (std::max(block_ms, found_.sizes[i].pass_ms) < left_ms) {
                measure_block(i);
                measured = true;
            }
        }
    }
}

std::int64_t Calibrator::size_of(std::size_t share) const {
    const LoadedShare& of = shares_[share];
    if (!of.batch().items)
        return of.samples();
    std::int64_t tokens = 0;
    for (const MicroBatch& part : of.micro_batches())
        tokens += part.padded_tokens;
    return tokens;
}

double Calibrator::elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
        .count();
}

// A pass of another share, by the one tried last.
double Calibrator::expected_ms(std::size_t share) const {
    return found_.sizes.back().pass_ms * static_cast<double>(size_of(share)) /
           static_cast<double>(size_of(found_.sizes.back()));
}

double Calibrator::forward_backward_ms(const LoadedShare& share) {
    const KeptCasts casts{model_.arithmetic()};
    timer_.begin();
    for (const MicroBatch& micro_batch : share.micro_batches()) {
        forward_timer_.begin();
        const at::Tensor loss = normalised_loss(
            run_forward(model_, share.on_device(micro_batch), {}), share.weights(), status_);
        forward_timer_.end();
        if (loss.defined())
            loss.backward();
    }
    timer_.end();
    activity::progress();
    const double ms = std::max(timer_.ms(), shortest_pass_ms);
    if (share.micro_batches().size() == 1) {
        found_.forward_ms += forward_timer_.ms();
        found_.passes_ms += ms;
    }
    return ms;
}

void Calibrator::try_size(std::size_t share) {
    peak_.reset();
    found_.sizes.push_back({.share = share});
    within_memory(share, [&] {
        found_.sizes.back().pass_ms = forward_backward_ms(shares_[share]);
        note_memory(size_of(share));
    });
}

// If memory does not hold the share, neither it nor any larger one is measured.
template <class Function>
void Calibrator::within_memory(std::size_t share, Function&& function) {
    try {
        function();
    } catch (const std::exception& error) {
        if (!is_out_of_memory(error))
            throw;
        found_.is_full = true;
        std::erase_if(found_.sizes, [&](const Size& size) { return size.share >= share; });
        if (found_.sizes.empty())
            throw DeviceError("calibration ran out of memory",
                              reason_of(error),
                              "lower --max-sentences or --max-tokens on this rank, or give it 0");
    }
}

void Calibrator::add_halved() {
    Size halved = found_.sizes.front();
    if (shares_[halved.share].samples() < 2)
        return;
    halved.micro_batches = 2;
    halved.blocks_ms.clear();
    found_.sizes.push_back(halved);
}

void Calibrator::measure_block(std::size_t index) {
    LoadedShare& share = shares_[found_.sizes[index].share];
    within_memory(found_.sizes[index].share, [&] {
        Size& size = found_.sizes[index];
        if (std::cmp_not_equal(share.micro_batches().size(), size.micro_batches))
            share.recut(
                {.samples = (share.samples() + size.micro_batches - 1) / size.micro_batches});
        int passes = 0;
        double total_ms = 0;
        for (; total_ms < block_ms; ++passes)
            total_ms += forward_backward_ms(share);
        size.pass_ms = total_ms / passes;
        size.blocks_ms.push_back(size.pass_ms);
    });
}

void Calibrator::note_memory(std::int64_t size) {
    const double mb = peak_.mb();
    if (size > found_.peak_size)
        found_.mb_per_unit =
            std::max(0.0, (mb - found_.peak_mb) / static_cast<double>(size - found_.peak_size));
    found_.peak_size = size;
    found_.peak_mb = mb;
}

std::int64_t Calibrator::memory_limit() const {
    if (found_.is_full) {
        std::int64_t most = 0;
        for (const Size& size : found_.sizes)
            most = std::max(most, size_of(size));
        return most;
    }
    if (options_.memory_mb == 0 || found_.mb_per_unit == 0)
        return std::numeric_limits<std::int64_t>::max();
    const double free_mb = usable_memory * static_cast<double>(options_.memory_mb) - found_.peak_mb;
    return std::max<std::int64_t>(
        1, found_.peak_size + static_cast<std::int64_t>(std::floor(free_mb / found_.mb_per_unit)));
}

// On the line through the measured peaks.
double Calibrator::activations_mb(std::int64_t size) const {
    const auto beyond = static_cast<double>(size - found_.peak_size);
    return std::max(0.0, found_.peak_mb - found_.base_mb + beyond * found_.mb_per_unit);
}

void Calibrator::describe(StepCost& cost, std::int64_t micro_batch) const {
    if (options_.may_recompute)
        cost.recomputed_layers = model_.recomputed_layers();
    if (found_.passes_ms > 0)
        cost.forward_part = std::min(found_.forward_ms / found_.passes_ms, 1.0);
    cost.activations_mb = activations_mb(micro_batch);
}

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

}  // namespace hetseq
