#include "hetseq/train/shares/update_cost.hpp"

#include <algorithm>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{16} << 20;
constexpr std::int64_t most_reduced_bytes = std::int64_t{4} << 20;
constexpr int reductions = 10;
constexpr double measured_ms = 200;
constexpr double shortest_ms = 1e-3;
constexpr double some_lr = 1e-3, some_gradient = 1e-3;  // no step's time depends on the values

double wall_ms() {
    return 1000 * monotonic_seconds();
}

double cpu_ms() {
    return 1000 * process_cpu_seconds();
}

// The part of the parameters that is measured, and what all are of it.
struct Part {
    std::int64_t length;
    double factor;
};
Part part_of(const at::Tensor& values, std::int64_t numel, std::int64_t bytes) {
    const std::int64_t length =
        std::min(numel, bytes / static_cast<std::int64_t>(values.element_size()));
    return {length, static_cast<double>(numel) / static_cast<double>(length)};
}

at::Tensor sent_zeros(const FlatParameters& parameters,
                      const Part& part,
                      std::optional<at::ScalarType> sent) {
    const at::TensorOptions own = parameters.values().options();
    return at::zeros({part.length}, sent ? own.dtype(*sent) : own);
}

}  // namespace

UpdateCost measure_update(const FlatParameters& parameters,
                          const std::function<std::unique_ptr<Optimizer>(FlatParameters&)>& make) {
    const at::Tensor values = parameters.values();
    if (!values.is_cpu() || parameters.held_numel() == 0)
        return {};
    const Part part = part_of(values, parameters.held_numel(), most_bytes);
    TensorRegistry some;
    some.register_parameter("values",
                            at::zeros({part.length}, values.options().requires_grad(false)));
    FlatParameters own{some, [](const std::string&) { return true; }};
    const auto optimizer = make(own);
    GradientNorm norm{own};
    own.gradients().fill_(some_gradient);
    const auto update = [&] {
        norm.of(own.gradients());
        optimizer->step(own, some_lr);
        activity::progress();
    };
    update();  // new memory is slow
    const double wall_begin = wall_ms(), cpu_begin = cpu_ms();
    int updates = 0;
    do {  // once at least, however long this process was kept from running before it
        update();
        ++updates;
    } while (wall_ms() - wall_begin < measured_ms);
    const double wall = wall_ms() - wall_begin;
    return {wall / updates * part.factor, wall / std::max(cpu_ms() - cpu_begin, shortest_ms)};
}

double measure_reduction_cpu_ms(const FlatParameters& parameters,
                                Communicator& communicator,
                                std::optional<at::ScalarType> sent) {
    const Part part = part_of(parameters.values(), parameters.values().numel(), most_reduced_bytes);
    const at::Tensor gradients = sent_zeros(parameters, part, sent);
    communicator.all_reduce_sum(gradients);  // new memory is slow
    const double begin = cpu_ms();
    for (int i = 0; i < reductions; ++i)
        communicator.all_reduce_sum(gradients);
    return communicator.device().is_cpu() ? (cpu_ms() - begin) / reductions * part.factor : 0;
}

double measure_reduction_ms(const FlatParameters& parameters,
                            Communicator& communicator,
                            std::optional<at::ScalarType> sent) {
    const Part part = part_of(parameters.values(), parameters.values().numel(), most_bytes);
    const at::Tensor gradients = sent_zeros(parameters, part, sent);
    const at::Tensor first = gradients.narrow(0, 0, 1);
    std::vector<double> times;
    for (int i = 0; i <= reductions; ++i) {
        const double begin = wall_ms();
        communicator.all_reduce_sum(gradients);
        first.item();  // a GPU is behind its host
        if (i > 0)     // new memory is slow
            times.push_back(wall_ms() - begin);
        activity::progress();
    }
    std::nth_element(times.begin(), times.begin() + reductions / 2, times.end());
    return times[reductions / 2] * part.factor;
}

}  // namespace hetseq
