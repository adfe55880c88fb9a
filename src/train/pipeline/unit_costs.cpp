#include "hetseq/train/pipeline/unit_costs.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/balance/median.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/train/compute_timer.hpp"

namespace hetseq {

namespace {

// A measurement is the mean over a block of passes of at least this long: shorter ones would fall
// between the pauses that a CPU quota imposes.
constexpr double block_ms = 50;
constexpr int blocks = 3;
constexpr int most_passes = 1000;  // of a block

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

std::vector<at::Tensor> as_leaves(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& tensor : tensors)
        leaves.push_back(tensor.detach().set_requires_grad(tensor.is_floating_point()));
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

// One unit, which the model holds.
class UnitMeasurement {
public:
    UnitMeasurement(Model& model,
                    UnitRange unit,
                    const MicroBatch& batch,
                    const std::vector<at::Tensor>& inputs)
        : model_{model}, unit_{unit}, batch_{batch}, inputs_{inputs} {}

    UnitCost cost() {
        const KeptCasts casts{model_.arithmetic()};  // which a pass has for all micro-batches
        pass();                                      // makes them, and touches new memory
        UnitCost cost = memory();
        std::vector<double> forwards, backwards;
        for (int i = 0; i < blocks; ++i) {
            const PassTime mean = block();
            forwards.push_back(mean.forward_ms);
            backwards.push_back(mean.backward_ms);
        }
        cost.forward_ms = median(forwards);
        cost.backward_ms = median(backwards);
        return cost;
    }
    /// What the next unit gets.
    const std::vector<at::Tensor>& outputs() const noexcept { return outputs_; }

private:
    struct PassTime {
        double forward_ms = 0;
        double backward_ms = 0;
    };

    PassTime pass() {
        ComputeTimer forward{batch_.sample_ids.device()}, backward{batch_.sample_ids.device()};
        const std::vector<at::Tensor> inputs = as_leaves(inputs_);
        forward.begin();
        const Carried carried = run_chain_units(model_, unit_, {inputs}, batch_, {});
        forward.end();
        backward.begin();
        backward_of(carried);
        backward.end();
        activity::progress();
        return {forward.ms(), backward.ms()};
    }

    PassTime block() {
        PassTime sum;
        int passes = 0;
        for (; passes < most_passes && sum.forward_ms + sum.backward_ms < block_ms; ++passes) {
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
        const std::vector<at::Tensor> inputs = as_leaves(inputs_);
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

void drop_gradients(Model& model) {
    for (const NamedTensor& parameter : model.named_parameters()) {
        at::Tensor tensor = parameter.tensor;
        tensor.mutable_grad().reset();
    }
}

}  // namespace

std::vector<UnitCost> measure_units(Model& model,
                                    const MicroBatch& batch,
                                    const std::function<void()>& prepare) {
    std::vector<UnitCost> costs;
    std::map<std::string, UnitCost> known;
    std::vector<at::Tensor> inputs;
    const std::vector<ChainUnit> chain = model.chain();
    for (std::size_t u = 0; u < chain.size(); ++u) {
        const auto found = known.find(chain[u].kind);
        if (found != known.end()) {
            costs.push_back(found->second);
            continue;
        }
        model.hold({u, u + 1});
        prepare();
        give_gradients(model);
        UnitMeasurement measurement{model, {u, u + 1}, batch, inputs};
        costs.push_back(known[chain[u].kind] = measurement.cost());
        inputs = measurement.outputs();
        drop_gradients(model);
    }
    model.hold({0, 0});
    return costs;
}

UnitCost cost_between(
    const UnitCost& of_small, double small, const UnitCost& of_large, double large, double size) {
    const double along = large > small ? (size - small) / (large - small) : 1;
    const auto between = [&](double a, double b) {
        return std::max(a + along * (b - a), std::min(a, b) * std::min(size / small, 1.0));
    };
    return {.forward_ms = between(of_small.forward_ms, of_large.forward_ms),
            .backward_ms = between(of_small.backward_ms, of_large.backward_ms),
            .kept_mb = between(of_small.kept_mb, of_large.kept_mb),
            .workspace_mb = between(of_small.workspace_mb, of_large.workspace_mb),
            .output_mb = between(of_small.output_mb, of_large.output_mb)};
}

}  // namespace hetseq
