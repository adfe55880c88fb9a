#include "train/pipeline/staged_run.hpp"

#include <memory>
#include <span>
#include <sstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/model/arithmetic.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/optim/schedule.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"
#include "hetseq/train/checkpoint/checkpoint_reader.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/validation/evaluator.hpp"
#include "hetseq/train/worker_map.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/waves/late_start.hpp"

namespace hetseq::test {

namespace {

constexpr std::uint64_t run_seed = 11;
constexpr std::int64_t bytes_of_file = 60'000;  // so that there are several

// What a run has beside the replica.
class Feeding {
public:
    Feeding(const StagedRun& run, const HostComm& world)
        : context_{world, environment().thread_support() == ThreadSupport::multiple},
          collator_{collator_of(run.staged.model)},
          corpus_{context_,
                  run.data,
                  toy_schema(),
                  {.shuffle_blocks = 2, .block_length = 8, .cache_mb = 1}},
          loader_{corpus_, *collator_, options(run)},
          valid_loader_{corpus_, *collator_, options(run)},
          plan_{corpus_.samples(), run.batch},
          workers_{workers_of(run)},
          shares_{world, "pipeline", declared_costs(capacities(run, world))} {
        shares_.set_leaders(workers_.leaders());
    }

    Loader& loader() { return loader_; }
    Loader& valid_loader() { return valid_loader_; }
    const BatchPlan& plan() const { return plan_; }
    const WorkerMap& workers() const { return workers_; }
    SharePlan& shares() { return shares_; }

private:
    // A collator of this kind needs rows in their order.
    static Loader::Options options(const StagedRun& run) {
        return {.seed = run_seed,
                .shuffle = Shuffle::no,
                .loss_terms = run.staged.model.make()->loss_terms().size()};
    }
    static std::vector<int> leaders_of(const StagedRun& run) {
        std::vector<int> leaders;
        for (const StagedWorker& worker : run.staged.workers())
            leaders.push_back(worker.ranks.front());
        return leaders.empty() ? std::vector<int>{0} : leaders;
    }
    static WorkerMap workers_of(const StagedRun& run) {
        std::vector<std::vector<int>> ranks;
        for (const StagedWorker& worker : run.staged.workers())
            ranks.push_back(worker.ranks);
        return ranks.empty() ? WorkerMap{1} : WorkerMap{ranks};
    }
    static std::vector<std::int64_t> capacities(const StagedRun& run, const HostComm& world) {
        std::vector<std::int64_t> units(static_cast<std::size_t>(world.size()), 0);
        std::size_t worker = 0;
        for (const int leader : leaders_of(run))
            units[static_cast<std::size_t>(leader)] =
                run.micro_batches.empty() ? run.micro_batch : run.micro_batches.at(worker++);
        return units;
    }

    DataContext context_;
    std::unique_ptr<Collator> collator_;
    Corpus corpus_;
    Loader loader_, valid_loader_;
    BatchPlan plan_;
    WorkerMap workers_;
    SharePlan shares_;
};

std::unique_ptr<Optimizer> optimizer_of(const StagedRun& run, FlatParameters& parameters) {
    const OptimizerOptions options{.name = run.optimizer, .weight_decay = 0.01};
    if (run.optimizer == "sgd")
        return make_sgd(parameters, options);
    return run.optimizer == "lamb" ? make_lamb(parameters, options)
                                   : make_adamw(parameters, options);
}

}  // namespace

std::int64_t bits_of(const at::Tensor& values) {
    const at::Tensor bits =
        values.contiguous().flatten().view(values.element_size() == 8 ? at::kLong : at::kInt);
    const at::Tensor places = at::arange(bits.numel(), at::kLong) * 2 + 1;
    return (bits.to(at::kLong) * places * places).sum().item<std::int64_t>();
}

StagedResult train_staged(const StagedRun& run, const HostComm& world) {
    StagedReplica replica(run.staged, world);
    if (replica.shared() != nullptr)
        replica.shared()->copy_from_first(replica.parameters(), nullptr);
    Feeding feeding(run, world);
    const auto optimizer = optimizer_of(run, replica.parameters());
    const auto files_with = [&](std::span<const GradientSet> sums) {
        return checkpoint_files(replica.model(),
                                replica.parameters(),
                                *optimizer,
                                bytes_of_file,
                                {.of_parameters = replica.holders(), .rank = world.rank()},
                                sums);
    };
    LateStart start{replica.parameters(), replica.model(), run.staleness, {}};
    if (!run.from.empty()) {
        start.take(verified_state(world, run.from).progress);
        load_checkpoint(world, replica.communicator(), run.from, files_with(start.sums));
        optimizer->restored();
        if (replica.shared() != nullptr) {
            replica.shared()->copy_from_first(replica.parameters(), optimizer.get());
            for (const GradientSet& sums : start.sums)
                replica.shared()->copy_from_first(replica.parameters(), sums.flat);
        }
    }
    const std::vector<CheckpointFile> files = files_with(start.sets);
    std::unique_ptr<CheckpointWriter> checkpoints;
    if (run.saves)
        checkpoints = std::make_unique<CheckpointWriter>(
            world,
            run.folder->checkpoints(),
            files,
            CheckpointWriter::Options{.threads_may_call_mpi = true});
    Evaluator evaluator(world,
                        feeding.workers(),
                        replica.pass(),
                        feeding.valid_loader(),
                        feeding.plan(),
                        feeding.shares());
    const Schedule schedule = fixed_schedule({.lr = 1e-2});
    Recorder recorder(nullptr, 1, {});
    Trainer trainer(
        {.world = world,
         .communicator = replica.communicator(),
         .workers = feeding.workers(),
         .pass = replica.pass(),
         .parameters = replica.parameters(),
         .optimizer = *optimizer,
         .schedule = schedule,
         .loader = feeding.loader(),
         .plan = feeding.plan(),
         .shares = feeding.shares(),
         .recorder = recorder,
         .evaluator = run.validates ? &evaluator : nullptr,
         .folder = run.folder,
         .checkpoints = checkpoints.get(),
         .shared = replica.shared(),
         .held_model = replica.shared() != nullptr ? &files.front() : nullptr,
         .gradient_sets = start.sets,
         .files_with =
             run.staleness > 0 ? decltype(TrainerParts::files_with)(files_with) : nullptr},
        {.clip_norm = run.clip_norm,
         .staleness = run.staleness,
         .stop_after = run.stop_after,
         .check_interval = 5},
        {.updates = run.updates,
         .seed = run_seed,
         .sent_type = run.sent_type,
         .identity = {.devices =
                          std::vector<std::string>(static_cast<std::size_t>(world.size()), "cpu")},
         .progress = start.progress,
         .sums = start.sums});
    StagedResult result{.report = trainer.run()};
    result.values = replica.values();
    result.losses = trainer.losses();
    return result;
}

StagedResult train_on_first_rank(const StagedRun& run, const HostComm& world) {
    StagedResult result;
    if (world.rank() == 0)
        result = train_staged(run, HostComm::serial());

    std::string names;
    for (const auto& [name, values] : result.values)
        names += name + "\n";
    result.losses.resize(static_cast<std::size_t>(
        world.broadcast(static_cast<std::int64_t>(result.losses.size()), 0)));
    world.broadcast(std::as_writable_bytes(std::span(result.losses)), 0);
    const std::shared_ptr<Model> model = run.staged.model.make();
    const auto communicator = make_communicator(world, environment(), at::kCPU);
    std::istringstream lines(world.broadcast(names, 0));
    for (std::string name; std::getline(lines, name);) {
        at::Tensor& values = result.values[name];
        if (world.rank() != 0)
            values = at::empty({model->find_parameter(name).numel()},
                               parameter_type(run.staged.precision));
        communicator->broadcast(values, 0);
    }
    return result;
}

Evaluation evaluate_staged(const StagedRun& run, const HostComm& world) {
    StagedReplica replica(run.staged, world);
    Feeding feeding(run, world);
    Evaluator evaluator(world,
                        feeding.workers(),
                        replica.pass(),
                        feeding.valid_loader(),
                        feeding.plan(),
                        feeding.shares());
    return evaluator.run();
}

}  // namespace hetseq::test
