#include "hetseq/app/training.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi_environment.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/model/model_file.hpp"

namespace hetseq {

namespace {

// Validation batches: no larger than one micro-batch of every rank.
std::int64_t valid_batch_size(SharePlan& shares) {
    return shares.total_capacity();
}

std::int64_t updates_to_run(const Options& options, std::int64_t updates_per_epoch) {
    if (options.max_update == 0 && options.max_epoch == 0)
        throw BadConfig("how long to train was not given",
                        "neither --max-update nor --max-epoch",
                        "give one of them");
    constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
    const std::int64_t by_epoch =
        options.max_epoch > 0 ? options.max_epoch * updates_per_epoch : unlimited;
    return std::min(by_epoch, options.max_update > 0 ? options.max_update : unlimited);
}

Schedule make_schedule(const Parts& parts, ScheduleOptions options, std::int64_t updates) {
    if (options.total_updates == 0)
        options.total_updates = updates;
    return parts.schedules.get(options.name)(options);
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
                   const RunFolder* folder)
    : world_{world},
      setup_{setup},
      folder_{folder},
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
      shares_{make_shares(
          world, setup, {*model_, parameters_, feed_.corpus(), feed_.loader(), feed_.plan()})},
      replay_{replayed_allocations(world, setup)},
      updates_{updates_to_run(setup.options, feed_.plan().batches_per_epoch())},
      schedule_{make_schedule(parts, setup.options.parts.schedule, updates_)},
      optimizer_{parts.optimizers.get(setup.options.parts.optimizer.name)(
          parameters_, setup.options.parts.optimizer)},
      recorder_{folder,
                world.rank(),
                {.log_interval = setup.options.log_interval,
                 .total_updates = updates_,
                 .loss_terms = model_->loss_terms()}} {
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
}

TrainerReport Training::run() {
    Trainer trainer(
        {.world = world_,
         .communicator = *communicator_,
         .model = *model_,
         .parameters = parameters_,
         .optimizer = *optimizer_,
         .schedule = schedule_,
         .loader = feed_.loader(),
         .plan = feed_.plan(),
         .shares = shares_,
         .recorder = recorder_,
         .evaluator = evaluator_ ? &*evaluator_ : nullptr,
         .folder = folder_},
        {.updates = updates_,
         .seed = setup_.options.seed,
         .clip_norm = setup_.options.clip_norm,
         .bucket_bytes = static_cast<std::int64_t>(setup_.options.bucket_mb * (1 << 20)),
         .valid_interval = setup_.options.valid_interval,
         .max_skips = setup_.options.max_skips,
         .follow = setup_.options.balance == "auto",
         .replay = replay_});
    return trainer.run();
}

std::int64_t Training::parameter_count() const {
    std::int64_t count = 0;
    for (const auto& parameter : parameters_.parameters())
        count += parameter.numel;
    return count;
}

}  // namespace hetseq
