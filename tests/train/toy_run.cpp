#include "train/toy_run.hpp"

#include <map>
#include <memory>
#include <new>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/balance/cut_shards.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_buckets.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/optim/schedule.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"
#include "hetseq/train/checkpoint/checkpoint_reader.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/worker_map.hpp"

#include "train/toy_model.hpp"
#include "train/waves/late_start.hpp"

namespace hetseq::test {

namespace {

// One whose memory does not suffice.
class FullOptimizer final : public Optimizer {
public:
    void step(FlatParameters&, double) override { throw std::bad_alloc(); }
    std::map<std::string, at::Tensor> state() const override { return {}; }
};

// Changes a value as a faulty memory would, unseen by autograd.
ToyModel::Spoil corruption(const HostComm& world, ToyModel& model, const ToyRun& run) {
    return [&model, &run, is_faulty = world.rank() == world.size() - 1](
               const MicroBatch&, const ForwardContext& context, ForwardResult&) {
        if (is_faulty && context.update == run.corrupted_update)
            model.parameters().front().data().add_(run.corruption);
    };
}

}  // namespace

std::unique_ptr<Optimizer> make_toy_optimizer(FlatParameters& parameters, const ToyRun& run) {
    if (run.optimizer == "full")
        return std::make_unique<FullOptimizer>();
    using Make = std::unique_ptr<Optimizer> (*)(FlatParameters&, const OptimizerOptions&);
    const std::map<std::string, Make> makes{{"adam", make_adam},
                                            {"adamw", make_adamw},
                                            {"lamb", make_lamb},
                                            {"sgd", make_sgd},
                                            {"momentum", make_sgd},
                                            {"adadelta", make_adadelta}};
    return makes.at(run.optimizer)(parameters,
                                   {.name = run.optimizer,
                                    .weight_decay = 0.01,
                                    .momentum = run.optimizer == "momentum" ? 0.9 : 0});
}

ToyResult train_toy(const MpiEnvironment& environment, const HostComm& world, const ToyRun& run) {
    const auto communicator = make_communicator(world, environment, run.device);
    DataContext context(world, environment.thread_support() == ThreadSupport::multiple);
    ToyModel model(run.dropout, run.stretch);
    initialise_parameters(model, toy_seed);
    model.to(run.device, run.dtype);
    model.set_spoil(run.corrupted_update < 0 ? run.spoil : corruption(world, model, run));
    if (run.take_ids)
        model.sum_ids(run.take_ids);
    FlatParameters parameters(model, [&](const std::string& name) { return model.decays(name); });
    if (!run.shards.empty())
        parameters.shard_state(
            cut_shards(blocks_of(parameters, cut_buckets(parameters, run.bucket_bytes)),
                       run.shards),
            world.rank());
    SharePlan shares(world, run.balance, run.capacities);
    Corpus corpus(
        context, run.data, toy_schema(), {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1});
    const WeightlessCollator collator(run.weightless);
    Loader loader(corpus, collator, {.seed = toy_seed, .device = run.device, .loss_terms = 2});
    const BatchPlan plan(corpus.samples(), run.batch_size);
    Loader valid_loader(
        corpus,
        collator,
        {.seed = toy_seed, .shuffle = Shuffle::no, .device = run.device, .loss_terms = 2});
    const BatchPlan valid_plan(corpus.samples(), shares.total_capacity());
    const WorkerMap workers{world.size()};
    const std::unique_ptr<Pass> pass = make_whole_pass(model);
    Evaluator evaluator(world, workers, *pass, valid_loader, valid_plan, shares);
    const auto optimizer = make_toy_optimizer(parameters, run);
    if (!run.shards.empty())
        optimizer->use_sum([&](const at::Tensor& sums) { communicator->all_reduce_sum(sums); });
    const Schedule schedule = run.schedule ? run.schedule : fixed_schedule({.lr = run.lr});
    const auto files_with = [&](std::span<const GradientSet> sums) {
        return checkpoint_files(model, parameters, *optimizer, 256 << 20, {}, sums);
    };
    LateStart start{parameters, model, run.staleness, run.progress};
    if (!run.from.empty()) {
        start.take(verified_state(world, run.from).progress);
        load_checkpoint(world, *communicator, run.from, files_with(start.sums));
        optimizer->restored();
    }
    std::unique_ptr<CheckpointWriter> checkpoints;
    if (run.saves)
        checkpoints = std::make_unique<CheckpointWriter>(
            world,
            run.folder->checkpoints(),
            files_with(start.sets),
            CheckpointWriter::Options{.threads_may_call_mpi =
                                          environment.thread_support() == ThreadSupport::multiple});
    Recorder recorder(nullptr, run.tells ? world.rank() : 1, {.loss_terms = model.loss_terms()});

    Trainer trainer(
        {.world = world,
         .communicator = *communicator,
         .workers = workers,
         .pass = *pass,
         .parameters = parameters,
         .optimizer = *optimizer,
         .schedule = schedule,
         .loader = loader,
         .plan = plan,
         .shares = shares,
         .recorder = recorder,
         .evaluator = run.validate ? &evaluator : nullptr,
         .folder = run.folder,
         .checkpoints = checkpoints.get(),
         .control = run.control,
         .gradient_sets = start.sets,
         .files_with =
             run.staleness > 0 ? decltype(TrainerParts::files_with)(files_with) : nullptr},
        {.clip_norm = run.clip_norm,
         .staleness = run.staleness,
         .max_skips = run.max_skips,
         .valid_interval = run.valid_interval,
         .save_interval_updates = run.save_interval,
         .stop_after = run.stop_after,
         .best_by = run.best_by,
         .patience = run.patience,
         .check_interval = run.check_interval,
         .drift = run.drift},
        {.updates = run.updates,
         .seed = toy_seed,
         .bucket_bytes = run.bucket_bytes,
         .follow = run.follow,
         .replay = run.replay,
         .identity = {.devices =
                          std::vector<std::string>(static_cast<std::size_t>(world.size()), "cpu")},
         .progress = start.progress,
         .loss_scale = run.loss_scale,
         .held_update = run.held_update,
         .pace = run.pace,
         .sums = start.sums});
    ToyResult result;
    result.report = trainer.run();
    result.parameters = parameters.values().clone();
    result.gradients = parameters.gradients().clone();
    result.losses = trainer.losses();
    return result;
}

}  // namespace hetseq::test
