#include "hetseq/train/evaluator.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include <ATen/ATen.h>

#include "hetseq/comm/agree.hpp"
#include "hetseq/data/batch_plan.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/train/share_plan.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t requests_ahead = 2;

// Adds one micro-batch's sums to `sums` (losses, then metrics), fp64, on the model's device.
void add_result(const ForwardResult& result, at::Tensor& sums) {
    std::vector<at::Tensor> values = result.losses;
    values.insert(values.end(), result.metrics.begin(), result.metrics.end());
    for (at::Tensor& value : values)
        value = value.to(at::kDouble);
    const at::Tensor stacked = at::stack(values);
    if (sums.defined())
        sums.add_(stacked);
    else
        sums = stacked;
}

}  // namespace

double Evaluation::loss() const {
    double sum = 0;
    for (const Value& term : losses)
        sum += term.value;
    return sum;
}

Evaluator::Evaluator(
    const HostComm& world, Model& model, Loader& loader, const BatchPlan& plan, SharePlan& shares)
    : world_{world.duplicate()}, model_{model}, loader_{loader}, plan_{plan}, shares_{shares} {}

void Evaluator::request(std::int64_t batch) {
    const GlobalBatch positions = plan_.batch(batch);
    loader_.request(positions, shares_.slices(positions), shares_.micro_batch());
}

// Losses, metrics, then weights, summed over this rank's shares.
void Evaluator::add_up(std::vector<double>& sums) {
    const std::size_t terms = model_.loss_terms().size();
    const std::size_t values = terms + model_.metrics().size();
    const std::int64_t batches = plan_.batches_per_epoch();
    const ForwardContext context{.mode = Mode::evaluate};
    at::Tensor device_sums;
    for (std::int64_t batch = 0; batch < std::min(requests_ahead, batches); ++batch)
        request(batch);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
        const LoadedShare share = loader_.take();
        if (batch + requests_ahead < batches)
            request(batch + requests_ahead);
        for (std::size_t j = 0; j < terms; ++j)
            sums[values + j] += share.weights()[j];
        for (const MicroBatch& micro_batch : share.micro_batches())
            add_result(model_.forward(micro_batch, context), device_sums);
    }
    if (!device_sums.defined())
        return;
    device_sums = device_sums.to(at::kCPU);
    std::copy_n(device_sums.const_data_ptr<double>(), values, sums.begin());
}

Evaluation Evaluator::run() {
    const auto begin = std::chrono::steady_clock::now();
    const at::NoGradGuard no_grad;
    const auto terms = model_.loss_terms();
    const auto metrics = model_.metrics();
    std::vector<double> sums(2 * terms.size() + metrics.size());
    // A bad block shows on the ranks of one host only; the others finish their part and then fail
    // with them.
    std::exception_ptr failure;
    try {
        add_up(sums);
    } catch (...) {
        failure = std::current_exception();
    }
    agree(world_, failure);
    world_.all_reduce(std::span<double>(sums), ReduceOp::sum);

    Evaluation evaluation;
    const double* weights = sums.data() + terms.size() + metrics.size();
    for (std::size_t j = 0; j < terms.size(); ++j)
        evaluation.losses.push_back({terms[j], weights[j] == 0 ? 0 : sums[j] / weights[j]});
    for (std::size_t m = 0; m < metrics.size(); ++m) {
        const double weight = weights[metrics[m].term];
        evaluation.metrics.push_back(
            {metrics[m].name, weight == 0 ? 0 : sums[terms.size() + m] / weight});
    }
    evaluation.samples = plan_.samples();
    evaluation.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return evaluation;
}

}  // namespace hetseq
