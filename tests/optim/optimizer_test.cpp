#include "hetseq/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <ATen/Parallel.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"

#include "optim/toy_module.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using test::matrices_decay;
using test::ToyModule;

constexpr int steps = 20;
constexpr double lr = 1e-2, decay = 0.1;

using Make = std::unique_ptr<Optimizer> (*)(FlatParameters&, const OptimizerOptions&);
constexpr Make all_optimizers[] = {make_adam, make_adamw, make_sgd, make_adadelta, make_lamb};

at::Tensor input(int step) {
    at::manual_seed(static_cast<std::uint64_t>(step));
    return at::randn({4, 5}, at::kDouble);
}

double all_alike(const std::string&) {
    return 1;
}

double slower_second(const std::string& name) {
    return name == "second" || name == "bias" ? 0.3 : 1;
}

using Factor = double (*)(const std::string&);

std::map<std::string, at::Tensor> train_flat(Make make,
                                             OptimizerOptions options,
                                             Factor factor = all_alike) {
    ToyModule module;
    FlatParameters flat(module, matrices_decay, factor);
    options.weight_decay = decay;
    const auto optimizer = make(flat, options);
    for (int step = 0; step < steps; ++step) {
        flat.zero_gradients();
        module.loss(input(step), step % 2 == 0).backward();
        optimizer->step(flat, lr);
    }
    std::map<std::string, at::Tensor> values;
    for (const auto& parameter : flat.parameters())
        values[parameter.name] = parameter.tensor.detach().clone();
    return values;
}

// The same with torch::optim, in a group for each decay and rate. Gradients are zeroed, not
// dropped: one that backward does not reach is zero in hetseq.
template <class TorchOptimizer, class TorchOptions>
std::map<std::string, at::Tensor> train_torch(TorchOptions options, Factor factor = all_alike) {
    ToyModule module;
    std::map<std::pair<bool, double>, std::vector<at::Tensor>> members;  // by decay and factor
    for (const auto& item : module.named_parameters())
        if (item.name != "tied" && item.name != "frozen") {
            item.tensor.mutable_grad() = at::zeros_like(item.tensor);
            members[{matrices_decay(item.name), factor(item.name)}].push_back(item.tensor);
        }
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const auto& [kind, tensors] : members) {
        TorchOptions own = options;
        own.weight_decay(kind.first ? decay : 0).lr(kind.second * lr);
        groups.emplace_back(tensors, std::make_unique<TorchOptions>(own));
    }
    TorchOptimizer optimizer(groups, options);
    for (int step = 0; step < steps; ++step) {
        optimizer.zero_grad(/*set_to_none=*/false);
        module.loss(input(step), step % 2 == 0).backward();
        optimizer.step();
    }
    std::map<std::string, at::Tensor> values;
    for (const auto& item : module.named_parameters())
        values[item.name] = item.tensor.detach().clone();
    return values;
}

void expect_equal(const std::map<std::string, at::Tensor>& values,
                  const std::map<std::string, at::Tensor>& expected) {
    for (const auto& [name, value] : values)
        EXPECT_TRUE(value.allclose(expected.at(name), 1e-12, 1e-13))
            << name << ": " << (value - expected.at(name)).abs().max();
}

TEST(OptimizerTest, AdamEqualsTorchs) {
    expect_equal(train_flat(make_adam, {}),
                 train_torch<torch::optim::Adam>(torch::optim::AdamOptions(lr)));
}

TEST(OptimizerTest, AdamWEqualsTorchs) {
    expect_equal(train_flat(make_adamw, {}),
                 train_torch<torch::optim::AdamW>(torch::optim::AdamWOptions(lr)));
}

TEST(OptimizerTest, SgdEqualsTorchs) {
    expect_equal(train_flat(make_sgd, {}),
                 train_torch<torch::optim::SGD>(torch::optim::SGDOptions(lr)));
}

TEST(OptimizerTest, SgdWithMomentumEqualsTorchs) {
    OptimizerOptions options;
    options.momentum = 0.9;

    expect_equal(train_flat(make_sgd, options),
                 train_torch<torch::optim::SGD>(torch::optim::SGDOptions(lr).momentum(0.9)));
}

TEST(OptimizerTest, TwoRatesEqualTorchsParameterGroups) {
    OptimizerOptions with_momentum;
    with_momentum.momentum = 0.9;
    const auto one_rate = train_flat(make_adamw, {});

    const auto adamw = train_flat(make_adamw, {}, slower_second);
    expect_equal(adamw,
                 train_torch<torch::optim::AdamW>(torch::optim::AdamWOptions(lr), slower_second));
    EXPECT_FALSE(adamw.at("second").allclose(one_rate.at("second"), 1e-3));
    expect_equal(train_flat(make_adam, {}, slower_second),
                 train_torch<torch::optim::Adam>(torch::optim::AdamOptions(lr), slower_second));
    expect_equal(
        train_flat(make_sgd, with_momentum, slower_second),
        train_torch<torch::optim::SGD>(torch::optim::SGDOptions(lr).momentum(0.9), slower_second));
}

// Two parameters that do not know of each other: each goes as it would alone at its own rate.
TEST(OptimizerTest, TwoRatesOfAdadeltaAreThoseOfTwoRuns) {
    struct Pair : TensorRegistry {
        at::Tensor x = register_parameter("x", at::linspace(-1, 2, 9, at::kDouble));
        at::Tensor y = register_parameter("y", at::linspace(1, 3, 5, at::kDouble));
    };
    const auto train = [](Pair& module, double rate, Factor factor) {
        FlatParameters flat(module, matrices_decay, factor);
        OptimizerOptions options;
        options.weight_decay = decay;
        const auto optimizer = make_adadelta(flat, options);
        for (int step = 0; step < steps; ++step) {
            flat.zero_gradients();
            (module.x.pow(2).sum() + module.y.pow(4).sum()).backward();
            optimizer->step(flat, rate);
        }
    };
    Pair both, fast, slow;

    train(both, 1, [](const std::string& name) { return name == "y" ? 0.25 : 1; });
    train(fast, 1, all_alike);
    train(slow, 0.25, all_alike);

    EXPECT_TRUE(both.x.equal(fast.x));
    EXPECT_TRUE(both.y.equal(slow.y));
    EXPECT_FALSE(both.y.equal(fast.y));
}

// PyTorch has no Adadelta in C++: tests/reference/adadelta.py ran its Python one.
TEST(OptimizerTest, AdadeltaEqualsPyTorchs) {
    std::ifstream file("tests/reference/adadelta.json");
    const auto reference = nlohmann::json::parse(file);
    const auto expected = reference["values"].get<std::vector<double>>();
    const auto count = static_cast<std::int64_t>(expected.size());
    struct Vector : TensorRegistry {
        explicit Vector(std::int64_t n)
            : x(register_parameter("x", at::linspace(-1, 2, n, at::kDouble))) {}
        at::Tensor x;
    } module(count);
    FlatParameters flat(module, [](const std::string&) { return true; });
    OptimizerOptions options;
    options.rho = reference["rho"];
    options.adadelta_eps = reference["eps"];
    options.weight_decay = reference["weight_decay"];
    const auto optimizer = make_adadelta(flat, options);
    const at::Tensor curvature = at::linspace(0.5, 3, count, at::kDouble);

    for (int step = 0; step < reference["steps"].get<int>(); ++step) {
        flat.zero_gradients();
        (curvature * module.x.pow(2)).sum().mul(0.5).backward();
        optimizer->step(flat, reference["lr"]);
    }

    EXPECT_TRUE(module.x.allclose(at::tensor(expected, at::kDouble), 1e-13, 1e-15)) << module.x;
}

TEST(OptimizerTest, WeightDecayOfAdadeltaSparesWhatDoesNotDecay) {
    ToyModule module;
    FlatParameters flat(module, matrices_decay);
    const at::Tensor second = module.second.detach().clone(), bias = module.bias.detach().clone();
    OptimizerOptions options;
    options.weight_decay = decay;

    make_adadelta(flat, options)->step(flat, 1);  // all gradients zero

    EXPECT_FALSE(module.second.equal(second));
    EXPECT_TRUE(module.bias.equal(bias));
}

/// A parameter with its moments, and algorithm 2 of You et al. 2020 element by element.
struct LambReference {
    std::vector<double> w, m, v;

    void step(const std::vector<double>& gradient, int t, double rate, double weight_decay) {
        const OptimizerOptions options;
        std::vector<double> u(w.size());
        double w_squares = 0, u_squares = 0;
        for (std::size_t i = 0; i < w.size(); ++i) {
            m[i] = options.beta1 * m[i] + (1 - options.beta1) * gradient[i];
            v[i] = options.beta2 * v[i] + (1 - options.beta2) * gradient[i] * gradient[i];
            const double m_hat = m[i] / (1 - std::pow(options.beta1, t));
            const double v_hat = v[i] / (1 - std::pow(options.beta2, t));
            u[i] = m_hat / (std::sqrt(v_hat) + options.eps) + weight_decay * w[i];
            w_squares += w[i] * w[i];
            u_squares += u[i] * u[i];
        }
        const bool has_ratio = weight_decay > 0 && w_squares > 0 && u_squares > 0;
        const double ratio = has_ratio ? std::sqrt(w_squares) / std::sqrt(u_squares) : 1;
        for (std::size_t i = 0; i < w.size(); ++i)
            w[i] -= rate * ratio * u[i];
    }
};

std::vector<double> values_of(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().contiguous();
    return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// A ToyModule with a matrix that starts at zero, one that no loss reaches, and both.
struct LambModule : ToyModule {
    LambModule() {
        zero = register_parameter("zero", at::zeros({2, 3}, at::kDouble));
        still = register_parameter("still", at::ones({2, 3}, at::kDouble));
        nothing = register_parameter("nothing", at::zeros({2, 3}, at::kDouble));
    }
    at::Tensor loss(const at::Tensor& x, bool use_conditional) const {
        return ToyModule::loss(x, use_conditional) + (zero - 1).pow(4).sum();
    }
    at::Tensor zero, still, nothing;
};

/// After ten steps, the largest difference of a value from the reference, relative to max(1, |w|).
double difference_from_lamb_reference(double weight_decay, Factor factor) {
    LambModule module;
    FlatParameters flat(module, matrices_decay, factor);
    OptimizerOptions options;
    options.weight_decay = weight_decay;
    const auto optimizer = make_lamb(flat, options);
    std::vector<LambReference> references;
    for (const auto& parameter : flat.parameters()) {
        const std::vector<double> zeros(static_cast<std::size_t>(parameter.numel));
        references.push_back({values_of(parameter.tensor), zeros, zeros});
    }
    double largest = 0;
    for (int t = 1; t <= 10; ++t) {
        flat.zero_gradients();
        module.loss(input(t), t % 2 == 0).backward();
        for (std::size_t p = 0; p < references.size(); ++p) {
            const auto& parameter = flat.parameters()[p];
            references[p].step(values_of(parameter.tensor.grad()),
                               t,
                               lr * factor(parameter.name),
                               matrices_decay(parameter.name) ? weight_decay : 0);
        }
        optimizer->step(flat, lr);
        for (std::size_t p = 0; p < references.size(); ++p) {
            const auto values = values_of(flat.parameters()[p].tensor);
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double expected = references[p].w[i];
                largest = std::max(
                    largest, std::abs(values[i] - expected) / std::max(1., std::abs(expected)));
            }
        }
    }
    return largest;
}

TEST(OptimizerTest, LambIsThatOfThePaper) {
    EXPECT_LE(difference_from_lamb_reference(decay, all_alike), 1e-12);
    EXPECT_LE(difference_from_lamb_reference(decay, slower_second), 1e-12);
}

TEST(OptimizerTest, LambWithoutWeightDecayHasNoTrustRatio) {
    EXPECT_LE(difference_from_lamb_reference(0, slower_second), 1e-12);
}

TEST(OptimizerTest, LambOnManyThreadsIsThatOnOneBitForBit) {
    struct Matrix : TensorRegistry {
        at::Tensor x = register_parameter("x", at::linspace(-1, 2, 300'000, at::kFloat));
    };
    const auto train = [](int threads) {
        at::set_num_threads(threads);
        Matrix module;
        FlatParameters flat(module, matrices_decay);
        OptimizerOptions options;
        options.weight_decay = decay;
        const auto optimizer = make_lamb(flat, options);
        flat.gradients().copy_(at::linspace(3, -1, 300'000, at::kFloat).sin());
        for (int step = 0; step < 3; ++step)
            optimizer->step(flat, lr);
        return flat.values().clone();
    };
    const int before = at::get_num_threads();

    const at::Tensor alone = train(1), together = train(3);
    at::set_num_threads(before);

    EXPECT_TRUE(alone.equal(together));
}

/// Counts what the tensor allocator of this thread hands out.
class AllocationCounter final : public c10::MemoryReportingInfoBase {
public:
    void reportMemoryUsage(
        void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
        if (size > 0)
            ++count;
    }
    bool memoryProfilingEnabled() const override { return true; }
    int count = 0;
};

int allocations_of(const std::function<void()>& run) {
    const auto counter = std::make_shared<AllocationCounter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
    run();
    return counter->count;
}

TEST(OptimizerTest, StepAllocatesNoTensor) {
    ASSERT_GT(allocations_of([] { at::zeros({100}); }), 0);
    OptimizerOptions options;
    options.momentum = 0.9;
    options.weight_decay = decay;
    for (const Make make : all_optimizers) {
        ToyModule module;
        FlatParameters flat(module, matrices_decay);
        const auto optimizer = make(flat, options);

        EXPECT_EQ(allocations_of([&] { optimizer->step(flat, lr); }), 0);
    }
}

TEST(OptimizerTest, AStepBehindAClosedGateChangesNothing) {
    OptimizerOptions options;
    options.momentum = 0.9;
    options.weight_decay = decay;
    for (const Make make : all_optimizers) {
        ToyModule module, other_module;
        FlatParameters flat(module, matrices_decay), other_flat(other_module, matrices_decay);
        const auto optimizer = make(flat, options), ungated = make(other_flat, options);
        at::Tensor closed = at::zeros({}, at::kFloat);
        ASSERT_TRUE(optimizer->use_gate(closed));
        for (const double gradient : {0.5, -0.25}) {
            closed.fill_(1);
            flat.gradients().fill_(std::nan(""));
            const at::Tensor before = flat.values().clone();
            const at::Tensor state = optimizer->state().begin()->second.clone();
            optimizer->step(flat, lr);
            optimizer->take_back();
            EXPECT_TRUE(flat.values().equal(before));
            EXPECT_TRUE(optimizer->state().begin()->second.equal(state));

            closed.zero_();
            flat.gradients().fill_(gradient);
            optimizer->step(flat, lr);
            other_flat.gradients().fill_(gradient);
            ungated->step(other_flat, lr);
            EXPECT_FALSE(flat.values().equal(before));
        }
        EXPECT_TRUE(flat.values().equal(other_flat.values()));
        for (const auto& [name, tensor] : optimizer->state())
            EXPECT_TRUE(tensor.equal(ungated->state().at(name))) << name;
    }
}

TEST(OptimizerTest, RestoredStateGoesOnAsIfNothingHappened) {
    for (const Make make : all_optimizers) {
        OptimizerOptions options;
        options.momentum = 0.9;
        options.weight_decay = decay;
        ToyModule module, resumed;
        FlatParameters flat(module, matrices_decay), resumed_flat(resumed, matrices_decay);
        const auto optimizer = make(flat, options);
        const auto step = [](ToyModule& m, FlatParameters& f, Optimizer& o, int number) {
            f.zero_gradients();
            m.loss(input(number), true).backward();
            o.step(f, lr);
        };
        for (int number = 0; number < 3; ++number)
            step(module, flat, *optimizer, number);

        const auto other = make(resumed_flat, options);
        resumed_flat.values().copy_(flat.values());
        const auto saved = optimizer->state(), target = other->state();
        for (const auto& [name, tensor] : saved)
            target.at(name).copy_(tensor);
        step(module, flat, *optimizer, 3);
        step(resumed, resumed_flat, *other, 3);

        EXPECT_TRUE(flat.values().equal(resumed_flat.values()));
        EXPECT_EQ(other->state().at("step").item<std::int64_t>(), 4);
    }
}

}  // namespace
}  // namespace hetseq
