#include "hetseq/train/shares/update_cost.hpp"

#include <algorithm>
#include <chrono>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{16} << 20;
constexpr double measured_ms = 200;
constexpr double some_lr = 1e-3, some_gradient = 1e-3;  // no step's time depends on the values

double milliseconds_of(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
}

}  // namespace

double measure_update_ms(const FlatParameters& parameters,
                         const std::function<std::unique_ptr<Optimizer>(FlatParameters&)>& make) {
    const at::Tensor values = parameters.values();
    if (!values.is_cpu())
        return 0;
    const std::int64_t length =
        std::min(values.numel(), most_bytes / static_cast<std::int64_t>(values.element_size()));
    torch::nn::Module module;
    module.register_parameter("values", at::zeros({length}, values.options().requires_grad(false)));
    FlatParameters own{module, [](const std::string&) { return true; }, 0};
    const auto optimizer = make(own);
    own.gradients().fill_(some_gradient);
    const auto update = [&] {
        gradient_norm(own.gradients());
        optimizer->step(own, some_lr);
        activity::progress();
    };
    update();  // new memory is slow
    double total_ms = 0;
    int updates = 0;
    for (; total_ms < measured_ms; ++updates)
        total_ms += milliseconds_of(update);
    return total_ms / updates * static_cast<double>(values.numel()) / static_cast<double>(length);
}

}  // namespace hetseq
