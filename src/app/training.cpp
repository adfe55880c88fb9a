#include "hetseq/app/training.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/util/safetensors.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi_environment.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/model/model_file.hpp"
#include "hetseq/train/checkpoint_reader.hpp"
#include "hetseq/train/run_control.hpp"
#include "hetseq/train/run_folder.hpp"

namespace hetseq {

namespace {

// Validation batches: no larger than one micro-batch of every rank.
std::int64_t valid_batch_size(SharePlan& shares) {
    return shares.total_capacity();
}

std::int64_t updates_to_run(const Options& options,
                            std::int64_t updates_per_epoch,
                            std::int64_t origin) {
    if (options.max_update == 0 && options.max_epoch == 0)
        throw BadConfig("how long to train was not given",
                        "neither --max-update nor --max-epoch",
                        "give one of them");
    constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
    const std::int64_t by_epoch =
        options.max_epoch > 0 ? origin + options.max_epoch * updates_per_epoch : unlimited;
    return std::min(by_epoch, options.max_update > 0 ? options.max_update : unlimited);
}

// Of every rank, to the last bit that its results may depend on.
std::vector<std::string> device_names(const Topology& topology) {
    std::vector<std::string> names;
    for (const RankInfo& info : topology.ranks)
        names.push_back(info.device_name);
    return names;
}

std::vector<std::string> all_limits(const RankSetup& setup) {
    std::vector<std::string> limits;
    for (const RankInfo& info : setup.topology.ranks)
        limits.push_back(rank_limits(setup, info.rank));
    return limits;
}

bool are_unlike(const std::vector<std::string>& devices) {
    return std::any_of(
        devices.begin(), devices.end(), [&](const auto& name) { return name != devices[0]; });
}

std::string corpus_text(const Corpus& corpus) {
    std::vector<std::string> fields;
    for (const auto& [field, shape] : corpus.row_shapes())
        fields.push_back(field + " " + shape_text(shape));
    return join(fields, ", ");
}

Schedule make_schedule(const Parts& parts, ScheduleOptions options, std::int64_t span) {
    options.total_updates = span;
    return parts.schedules.get(options.name)(options);
}

DriftPolicy drift_policy(const std::string& name) {
    if (name == "abort")
        return DriftPolicy::abort;
    return name == "sync" ? DriftPolicy::sync : DriftPolicy::warn;
}

}  // namespace

std::shared_ptr<Model> build_model(const HostComm& world,
                                   const RankSetup& setup,
                                   const Parts& parts) {
    return agree_on(world, [&] {
        std::shared_ptr<Model> model = parts.models.get(setup.options.model)(setup.options.parts);
        check_no_batch_statistics(*model);
        const std::string& source = setup.options.parts.init_model;
        if (source.empty())
            initialise_parameters(*model, setup.options.seed);
        else
            load_model(model_file(source), *model);
        model->to(setup.device, setup.dtype);
        return model;
    });
}

Feed::Feed(DataContext& context,
           const std::string& data,
           const RankSetup& setup,
           const Parts& parts,
           const Model& model,
           std::int64_t batch_size,
           Shuffle shuffle)
    : corpus_{context,
              data,
              parts.datasets.get(setup.options.dataset)(setup.options.parts),
              setup.options.corpus},
      collator_{parts.batchings.get(setup.options.batching)(setup.options.parts)},
      loader_{corpus_,
              *collator_,
              {.seed = setup.options.seed,
               .shuffle = shuffle,
               .device = setup.device,
               .loss_terms = model.loss_terms().size()}},
      plan_{corpus_.samples(), batch_size} {}

Training::Training(const MpiEnvironment& environment,
                   const HostComm& world,
                   const RankSetup& setup,
                   const Parts& parts,
                   const RunFolder* folder,
                   const ResumePoint* point)
    : world_{world},
      setup_{setup},
      folder_{folder},
      progress_{point != nullptr ? continued_progress(setup.options, *point) : TrainingProgress{}},
      continued_{point != nullptr ? std::optional(point->state.run) : std::nullopt},
      communicator_{make_communicator(world, environment, setup.device)},
      data_{world, environment.thread_support() == ThreadSupport::multiple},
      model_{build_model(world, setup, parts)},
      parameters_{*model_,
                  [this](const std::string& name) { return model_->decays(name); },
                  status_slot::count(static_cast<std::int64_t>(model_->loss_terms().size()))},
      feed_{data_,
            required_data(setup.options),
            setup,
            parts,
            *model_,
            setup.batch_size,
            Shuffle::yes},
      optimizer_{parts.optimizers.get(setup.options.parts.optimizer.name)(
          parameters_, setup.options.parts.optimizer)},
      checkpoint_files_{checkpoint_files(*model_, parameters_, *optimizer_)},
      checkpoints_{make_checkpoints()},
      recorded_{replayed_allocations(world, setup)},
      shares_{make_shares(
          world,
          setup,
          recorded_,
          calibration_subject(),
          continues_as_it_was() ? point->state.progress.costs : std::vector<StepCost>{})},
      updates_{
          updates_to_run(setup.options, feed_.plan().batches_per_epoch(), progress_.order_origin)},
      schedule_updates_{span_of_schedule()},
      schedule_{make_schedule(parts, setup.options.parts.schedule, schedule_updates_)} {
    if (!setup.options.valid_data.empty()) {
        valid_feed_.emplace(data_,
                            setup.options.valid_data,
                            setup,
                            parts,
                            *model_,
                            valid_batch_size(shares_),
                            Shuffle::no);
        evaluator_.emplace(world, *model_, valid_feed_->loader(), valid_feed_->plan(), shares_);
    }
    // CPUs of different makes may have initialised to other last bits.
    communicator_->broadcast(parameters_.values(), 0);
    if (!continued_)
        take_first_cut();
}

CalibrationSubject Training::calibration_subject() {
    return {*model_,
            parameters_,
            feed_.corpus(),
            feed_.loader(),
            feed_.plan(),
            setup_.options.parts.optimizer.name +
                (checkpoints_ ? ", checkpoints" : ", no checkpoints")};
}

std::unique_ptr<CheckpointWriter> Training::make_checkpoints() const {
    if (folder_ == nullptr)
        return nullptr;
    return std::make_unique<CheckpointWriter>(
        world_,
        folder_->checkpoints(),
        checkpoint_files_,
        CheckpointWriter::Options{.keep_last = setup_.options.keep_last});
}

// The cuts to repeat, of a recorded run or of this one before it was continued.
AllocationsByUpdate Training::replay() const {
    if (setup_.options.balance != "auto")
        return recorded_.by_update;
    return continues_as_it_was() ? progress_.allocations : AllocationsByUpdate{};
}

// So that the start report shows the cut that the run begins with.
void Training::take_first_cut() {
    const AllocationsByUpdate cuts = replay();
    const auto holding = holding_at(cuts, progress_.updates);
    if (holding != cuts.end())
        shares_.change(holding->second);
}

// The same batches on as many ranks.
bool Training::continues_its_batches() const {
    return continued_ && std::ssize(continued_->devices) == world_.size() &&
           continued_->corpus == corpus_text(feed_.corpus()) &&
           continued_->options.at("batch-size") == setup_.values.at("batch-size");
}

// And on the same ranks, whose speed is known then.
bool Training::continues_as_it_was() const {
    return continues_its_batches() && continued_->devices == device_names(setup_.topology) &&
           continued_->limits == all_limits(setup_);
}

std::int64_t Training::span_of_schedule() const {
    if (setup_.options.parts.schedule.total_updates > 0)
        return setup_.options.parts.schedule.total_updates;
    return continued_ && progress_.schedule_origin < progress_.updates
               ? continued_->schedule_updates
               : updates_ - progress_.schedule_origin;
}

RunIdentity Training::identity() const {
    return {.options = setup_.values,
            .schedule_updates = schedule_updates_,
            .samples = feed_.plan().samples(),
            .corpus = corpus_text(feed_.corpus()),
            .devices = device_names(setup_.topology),
            .limits = all_limits(setup_)};
}

void Training::restore(const ResumePoint& point) {
    const RunIdentity own = identity();
    const bool keeps_position = point.is_own || !setup_.options.reset_position;
    if (keeps_position &&
        (point.state.run.samples != own.samples || point.state.run.corpus != own.corpus))
        throw BadConfig("--data is not what " + point.folder.string() + " was trained with",
                        std::to_string(own.samples) + " samples (" + own.corpus + ") here, " +
                            std::to_string(point.state.run.samples) + " (" +
                            point.state.run.corpus + ") there",
                        "give the same data, or start another run from it with --restore-file and "
                        "--reset-position");
    std::vector<CheckpointFile> files = checkpoint_files_;
    if (!point.is_own && setup_.options.reset_optimizer)
        files.resize(1);  // the model's
    load_checkpoint(world_, *communicator_, point.folder, files);
    progress_ = continued_progress(setup_.options, point);
    continued_ = point.state.run;
    if (!continues_its_batches())
        progress_.allocations.clear();
    take_first_cut();
}

bool Training::is_finished() const {
    const std::int64_t patience = setup_.options.patience;
    return progress_.updates >= updates_ ||
           (patience > 0 && progress_.validations_since_best >= patience);
}

TrainerReport Training::run(double start_seconds) {
    const Options& options = setup_.options;
    Recorder recorder(folder_,
                      world_.rank(),
                      {.log_interval = options.log_interval,
                       .total_updates = updates_,
                       .loss_terms = model_->loss_terms(),
                       .window = progress_.window});
    const bool is_first = world_.rank() == 0;
    RunControl control({.start_seconds = start_seconds,
                        .time_limit_s = options.time_limit_s,
                        .save_minutes = options.save_minutes,
                        .stop_file = folder_ != nullptr && is_first ? folder_->stop_file() : "",
                        .watches_clock = is_first});
    const RunIdentity run = identity();
    Trainer trainer({.world = world_,
                     .communicator = *communicator_,
                     .model = *model_,
                     .parameters = parameters_,
                     .optimizer = *optimizer_,
                     .schedule = schedule_,
                     .loader = feed_.loader(),
                     .plan = feed_.plan(),
                     .shares = shares_,
                     .recorder = recorder,
                     .evaluator = evaluator_ ? &*evaluator_ : nullptr,
                     .folder = folder_,
                     .checkpoints = checkpoints_.get(),
                     .control = &control},
                    {.updates = updates_,
                     .seed = options.seed,
                     .clip_norm = options.clip_norm,
                     .bucket_bytes = static_cast<std::int64_t>(options.bucket_mb * (1 << 20)),
                     .valid_interval = options.valid_interval,
                     .max_skips = options.max_skips,
                     .follow = options.balance == "auto",
                     .replay = replay(),
                     .save_interval_updates = options.save_interval_updates,
                     .save_interval = options.save_interval,
                     .patience = options.patience,
                     .check_interval = options.check_interval,
                     .drift = drift_policy(options.drift),
                     .unlike_devices = are_unlike(run.devices),
                     .identity = run,
                     .progress = progress_});
    TrainerReport report = trainer.run();
    control.end();
    return report;
}

std::int64_t Training::parameter_count() const {
    std::int64_t count = 0;
    for (const auto& parameter : parameters_.parameters())
        count += parameter.numel;
    return count;
}

}  // namespace hetseq
