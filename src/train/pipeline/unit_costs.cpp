#include "hetseq/train/pipeline/unit_costs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/train/compute_timer.hpp"
#include "hetseq/train/pipeline/pair_sum.hpp"
#include "hetseq/train/pipeline/stage.hpp"

namespace hetseq {

namespace {

constexpr double block_ms = 50;  // at least; a measurement is the mean over a block of passes
constexpr int blocks = 3;
constexpr int most_passes = 1000;  // of a block

// What a stage touches between two passes of a unit, so that caches do not hold the unit's values.
// More than the caches of most CPUs, and little beside a rank's memory.
constexpr std::int64_t most_touched_bytes = 64 << 20;

// Counts what LibTorch allocates while it is in force, on threads of backward too. LibTorch takes
// whatever is in its place for a profiler's state, and a function in Python asks for its config.
class AllocationMeter final : public torch::profiler::impl::ProfilerStateBase {
public:
    AllocationMeter()
        : ProfilerStateBase(torch::profiler::impl::ProfilerConfig(
              torch::profiler::impl::ProfilerState::Disabled)) {}

    torch::profiler::impl::ActiveProfilerType profilerType() override {
        return torch::profiler::impl::ActiveProfilerType::NONE;
    }
    void reportMemoryUsage(
        void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
        const std::lock_guard lock{mutex_};
        now_ += bytes;
        peak_ = std::max(peak_, now_);
    }
    bool memoryProfilingEnabled() const override { return true; }

    double now_mb() const { return static_cast<double>(now_) / bytes_of_mib; }
    double peak_mb() const { return static_cast<double>(peak_) / bytes_of_mib; }

private:
    std::mutex mutex_;
    std::int64_t now_ = 0, peak_ = 0;
};

// `trains_in_front`: backward goes on to the units that gave them.
std::vector<at::Tensor> as_leaves(const std::vector<at::Tensor>& tensors, bool trains_in_front) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& tensor : tensors)
        leaves.push_back(
            tensor.detach().set_requires_grad(trains_in_front && tensor.is_floating_point()));
    return leaves;
}

void backward_of(const Carried& carried) {
    std::vector<at::Tensor> roots, gradients;
    for (const std::vector<at::Tensor>* tensors : {&carried.tensors, &carried.result.losses})
        for (const at::Tensor& tensor : *tensors)
            if (tensor.requires_grad()) {
                roots.push_back(tensor);
                gradients.push_back(at::ones_like(tensor));
            }
    if (!roots.empty())
        torch::autograd::backward(roots, gradients);
}

double mb_of(const std::vector<at::Tensor>& tensors) {
    double bytes = 0;
    for (const at::Tensor& tensor : tensors)
        bytes += static_cast<double>(tensor.nbytes());
    return bytes / bytes_of_mib;
}

// Of values and gradients of units that the model does not hold.
std::int64_t bytes_of_others(const Model& model) {
    std::int64_t bytes = 0;
    for (const NamedTensor& parameter : model.named_parameters())
        if (!model.is_held(parameter.name))
            bytes += 2 * 4 * parameter.tensor.numel();
    return std::min(bytes, most_touched_bytes);
}

double cpu_ms() {
    return 1000 * process_cpu_seconds();
}

// One unit, which the model holds. With pauses its cost is in time of CPUs.
class UnitMeasurement {
public:
    UnitMeasurement(Model& model,
                    UnitRange unit,
                    const MicroBatch& batch,
                    const std::vector<at::Tensor>& inputs,
                    bool trains_in_front,
                    Pauses pauses)
        : model_{model},
          unit_{unit},
          batch_{batch},
          inputs_{inputs},
          trains_in_front_{trains_in_front},
          pauses_{pauses} {
        if (batch.sample_ids.is_cpu())
            others_ = at::zeros({bytes_of_others(model) / 4}, at::kFloat);
    }

    UnitCost cost() {
        const KeptCasts casts{model_.arithmetic()};  // which a pass has for all micro-batches
        pass();                                      // makes them, and touches new memory
        UnitCost cost = memory();
        std::array<PassTime, blocks> means;
        for (PassTime& mean : means)
            mean = block();
        std::ranges::nth_element(means, means.begin() + blocks / 2, {}, &PassTime::both_ms);
        cost.forward_ms = means[blocks / 2].forward_ms;
        cost.backward_ms = means[blocks / 2].backward_ms;
        return cost;
    }
    /// What the next unit gets.
    const std::vector<at::Tensor>& outputs() const noexcept { return outputs_; }

private:
    struct PassTime {
        double forward_ms = 0;
        double backward_ms = 0;

        double both_ms() const noexcept { return forward_ms + backward_ms; }
    };

    PassTime pass() {
        ComputeTimer forward{batch_.sample_ids.device()}, backward{batch_.sample_ids.device()};
        const std::vector<at::Tensor> inputs = as_leaves(inputs_, trains_in_front_);
        touch_others();
        const double before = cpu_ms();
        forward.begin();
        const Carried carried = run_chain_units(model_, unit_, {inputs}, batch_, {});
        forward.end();
        const double between = cpu_ms();
        backward.begin();
        backward_of(carried);
        backward.end();
        const double after = cpu_ms();
        activity::progress();
        if (pauses_ == Pauses::likely)
            return {between - before, after - between};
        return {forward.ms(), backward.ms()};
    }

    // Other units, as it were. A GPU's caches hold less than a unit.
    void touch_others() {
        if (others_.defined())
            others_.add_(1);
    }

    PassTime block() {
        PassTime sum;
        int passes = 0;
        for (; passes < most_passes && sum.both_ms() < block_ms; ++passes) {
            const PassTime own = pass();
            sum.forward_ms += own.forward_ms;
            sum.backward_ms += own.backward_ms;
        }
        return {sum.forward_ms / passes, sum.backward_ms / passes};
    }

    UnitCost memory() {
        const auto meter = std::make_shared<AllocationMeter>();
        const c10::DebugInfoGuard counts{c10::DebugInfoKind::PROFILER_STATE, meter};
        UnitCost cost;
        const std::vector<at::Tensor> inputs = as_leaves(inputs_, trains_in_front_);
        const Carried carried = run_chain_units(model_, unit_, {inputs}, batch_, {});
        cost.kept_mb = std::max(meter->now_mb(), 0.0);
        cost.output_mb = mb_of(carried.tensors);
        for (const at::Tensor& tensor : carried.tensors)
            outputs_.push_back(tensor.detach());
        backward_of(carried);
        cost.workspace_mb = std::max(meter->peak_mb() - cost.kept_mb, 0.0);
        return cost;
    }

    Model& model_;
    UnitRange unit_;
    const MicroBatch& batch_;
    const std::vector<at::Tensor>& inputs_;
    bool trains_in_front_;
    Pauses pauses_;
    at::Tensor others_;  // undefined: none
    std::vector<at::Tensor> outputs_;
};

// Or a first backward would take memory for them, which a stage has had before.
void give_gradients(Model& model) {
    for (const NamedTensor& parameter : model.named_parameters())
        if (parameter.tensor.requires_grad() && model.is_held(parameter.name)) {
            at::Tensor tensor = parameter.tensor;
            tensor.mutable_grad() = at::zeros_like(tensor.detach());
        }
}

std::set<std::string> read_by_several(const std::vector<ChainUnit>& chain) {
    std::set<std::string> several;
    for (const auto& [name, units] : readers_by_parameter(chain))
        if (units.size() > 1)
            several.insert(name);
    return several;
}

// Of what is held of `names`, which have gradients; 1 where that is nothing.
double filled_part(const Model& model, const std::set<std::string>& names) {
    double filled = 0, all = 0;
    for (const NamedTensor& parameter : model.named_parameters()) {
        if (!parameter.tensor.requires_grad() || !model.is_held(parameter.name) ||
            names.count(parameter.name) == 0)
            continue;
        const auto elements = static_cast<double>(parameter.tensor.numel());
        all += elements;
        filled += elements * sent_part(parameter.tensor.grad().reshape({-1}));
    }
    return all > 0 ? filled / all : 1;
}

// Units of one kind cost the same where the same of them and of what is in front is trained.
std::string cost_key(const Model& model, const ChainUnit& unit, bool trains_in_front) {
    const NamedTensors parameters = model.named_parameters();
    std::string key = unit.kind + (trains_in_front ? ", behind trained units: " : ": ");
    for (const std::string& name : unit.parameters)
        key += parameters[name].requires_grad() ? 't' : 'f';
    return key;
}

void drop_gradients(Model& model) {
    for (const NamedTensor& parameter : model.named_parameters()) {
        at::Tensor tensor = parameter.tensor;
        tensor.mutable_grad().reset();
    }
}

}  // namespace

std::vector<UnitCost> measure_units(Model& model,
                                    const MicroBatch& batch,
                                    Pauses pauses,
                                    const std::function<void()>& prepare) {
    std::vector<UnitCost> costs;
    std::map<std::string, UnitCost> known;
    const double begin_s = monotonic_seconds(), cpu_begin_ms = cpu_ms();
    std::vector<at::Tensor> inputs;
    const std::vector<ChainUnit> chain = model.chain();
    const std::set<std::string> tied = read_by_several(chain);
    const std::vector<bool> trains = trains_up_to(model);
    for (std::size_t u = 0; u < chain.size(); ++u) {
        const bool trains_in_front = u > 0 && trains[u - 1];
        const std::string key = cost_key(model, chain[u], trains_in_front);
        const auto found = known.find(key);
        if (found != known.end()) {
            costs.push_back(found->second);
            continue;
        }
        model.hold({u, u + 1});
        prepare();
        give_gradients(model);
        UnitMeasurement measurement{model, {u, u + 1}, batch, inputs, trains_in_front, pauses};
        UnitCost cost = measurement.cost();
        cost.filled = filled_part(model, tied);
        costs.push_back(known[key] = cost);
        inputs = measurement.outputs();
        drop_gradients(model);
    }
    model.hold({0, 0});
    if (pauses == Pauses::likely) {
        // How many pauses a short pass meets is chance; how many all of this met is not.
        const double ratio =
            1000 * (monotonic_seconds() - begin_s) / std::max(cpu_ms() - cpu_begin_ms, 1.0);
        for (UnitCost& cost : costs) {
            cost.forward_ms *= ratio;
            cost.backward_ms *= ratio;
        }
    }
    return costs;
}

UnitCost cost_between(
    const UnitCost& of_small, double small, const UnitCost& of_large, double large, double size) {
    const double along = large > small ? (size - small) / (large - small) : 1;
    const auto between = [&](double a, double b) {
        return std::max(a + along * (b - a), std::min(a, b) * std::min(size / small, 1.0));
    };
    const double grows =
        large > small && of_small.filled > 0
            ? std::clamp(
                  std::log(of_large.filled / of_small.filled) / std::log(large / small), 0.0, 1.0)
            : 1;
    return {.forward_ms = between(of_small.forward_ms, of_large.forward_ms),
            .backward_ms = between(of_small.backward_ms, of_large.backward_ms),
            .kept_mb = between(of_small.kept_mb, of_large.kept_mb),
            .workspace_mb = between(of_small.workspace_mb, of_large.workspace_mb),
            .output_mb = between(of_small.output_mb, of_large.output_mb),
            .filled = std::min(of_large.filled * std::pow(size / large, grows), 1.0)};
}

}  // namespace hetseq
