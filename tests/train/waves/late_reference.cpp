#include "train/waves/late_reference.hpp"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "train/toy_model.hpp"

namespace hetseq::test {

namespace {

// Of the summed and normalised losses of a batch, micro-batch by micro-batch.
void add_gradients(ToyModel& model, const LoadedShare& share, std::int64_t update) {
    for (const MicroBatch& micro_batch : share.micro_batches()) {
        const ForwardResult result = model.forward(micro_batch, {Mode::train, toy_seed, update});
        const std::vector<double>& weights = share.weights();
        (result.losses[0] / weights[0] + result.losses[1] / weights[1]).backward();
    }
}

void clip(FlatParameters& parameters, double clip_norm) {
    const double norm = GradientNorm(parameters).of(parameters.gradients()).item<double>();
    if (clip_norm > 0 && norm > clip_norm)
        parameters.gradients().mul_(clip_norm / norm);
}

}  // namespace

ComputedAt late_by(std::int64_t staleness) {
    return
        [staleness](std::int64_t update) { return std::max<std::int64_t>(0, update - staleness); };
}

at::Tensor train_late(const ToyRun& run,
                      const ComputedAt& computed_at,
                      const std::set<std::int64_t>& skipped) {
    const HostComm alone = HostComm::serial();
    DataContext context(alone, true);
    ToyModel model(run.dropout, run.stretch);
    initialise_parameters(model, toy_seed);
    model.to(run.dtype);
    FlatParameters parameters(model, [&](const std::string& name) { return model.decays(name); });
    const auto optimizer = make_toy_optimizer(parameters, run);
    Corpus corpus(
        context, run.data, toy_schema(), {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1});
    const ToyCollator collator;
    Loader loader(corpus, collator, {.seed = toy_seed, .loss_terms = 2});
    const BatchPlan plan(corpus.samples(), run.batch_size);
    std::vector<at::Tensor> values{parameters.values().clone()};
    for (std::int64_t k = 0; k < run.updates; ++k) {
        const GlobalBatch batch = plan.batch(k);
        loader.request(batch,
                       cut_by_rank(batch, std::vector<std::int64_t>{batch.size()}),
                       {.samples = run.capacities[0]});
        parameters.values().copy_(values[static_cast<std::size_t>(computed_at(k))]);
        parameters.zero_gradients();
        add_gradients(model, loader.take(), k);
        parameters.values().copy_(values.back());
        if (skipped.count(k) == 0) {
            clip(parameters, run.clip_norm);
            optimizer->step(parameters, run.lr);
        }
        values.push_back(parameters.values().clone());
    }
    return values.back();
}

}  // namespace hetseq::test
