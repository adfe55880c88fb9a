#include "hetseq/session/replica.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/device_memory.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/optim/averaged_optimizer.hpp"
#include "hetseq/train/averaged_weights.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/replica_sync.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/validation/best_by.hpp"
#include "hetseq/train/value_gather.hpp"
#include "hetseq/train/waves/wave_ring.hpp"
#include "hetseq/session/ranks/rank_recomputation.hpp"
#include "hetseq/session/ranks/sharding.hpp"
#include "hetseq/session/ranks/small_optimizer.hpp"

namespace hetseq {

namespace {

std::vector<std::string> result_names(const Model& model) {
    std::vector<std::string> names = model.loss_terms();
    for (const MetricSchema& metric : model.metrics())
        names.push_back(metric.name);
    for (const PerplexitySchema& perplexity : model.perplexities())
        names.push_back(perplexity.name);
    for (const std::string& score : model.scores())
        names.push_back(score);
    return names;
}

// Of this rank; none: all.
std::optional<UnitRange> held_units(const PipelineLayout* layout, int rank) {
    if (layout == nullptr)
        return std::nullopt;
    return layout->units_of(rank);
}

WorkerMap workers_of(const PipelineLayout* layout, int ranks) {
    return layout != nullptr ? WorkerMap{layout->ranks_by_worker()} : WorkerMap{ranks};
}

FlatParameters flat_parameters(Model& model) {
    return {model,
            [&](const std::string& name) { return model.decays(name); },
            [&](const std::string& name) { return model.learning_rate_factor(name); }};
}

CommunicatorOptions communicator_options(const Options& options) {
    return {.join_deadline = std::chrono::seconds{static_cast<std::int64_t>(options.join_timeout)},
            .largest_bytes = static_cast<std::int64_t>(options.bucket_mb * (1 << 20))};
}

// "a, b, c and 4 more"
std::string named(const std::vector<std::string>& tensors) {
    constexpr std::size_t most = 6;
    const std::size_t shown = std::min(tensors.size(), most);
    const std::string names = join(std::span{tensors}.first(shown), ", ");
    const std::size_t others = tensors.size() - shown;
    return others > 0 ? names + " and " + std::to_string(others) + " more" : names;
}

void start_from(const std::string& file_or_folder, std::uint64_t seed, Model& model) {
    const std::filesystem::path file = model_file(file_or_folder);
    const OtherHeads heads = load_pretrained(file, model, seed);
    if (!heads.drawn.empty())
        log::info(file.string() + " has other heads than the model: drawn from the seed are " +
                  named(heads.drawn));
    if (!heads.unread.empty())
        log::info("not read from " + file.string() + ": " + named(heads.unread));
}

}  // namespace

void warn_if_inexact(const Model& model) {
    if (!model.is_exact())
        log::warn(
            "the results of this task depend on how batches are cut over ranks and "
            "micro-batches, as it says itself (exact = False): other devices or shares give "
            "other results");
}

std::shared_ptr<Model> build_model(const HostComm& world,
                                   const RunSettings& settings,
                                   const Parts& parts,
                                   const UnitRange* held,
                                   FirstValues first) {
    return agree_on(world, [&] {
        const Options& options = settings.options();
        std::shared_ptr<Model> model = parts.models.get(options.model)(options.parts);
        if (held != nullptr)
            model->hold(*held);
        if (!model->initialises_itself())  // one that comes from outside was looked at there
            model->check_no_batch_statistics();
        if (!options.parts.init_model.empty() && first == FirstValues::drawn)
            start_from(options.parts.init_model, options.seed, *model);
        else if (!model->initialises_itself() && first == FirstValues::drawn)
            initialise_parameters(*model, options.seed);
        else if (!model->initialises_itself())
            initialise_without_draws(*model);
        model->to(settings.device, settings.precision);
        return model;
    });
}

namespace {

// Whoever evaluates takes each sample once.
CorpusOptions corpus_options_of(const RunSettings& settings, Shuffle shuffle) {
    CorpusOptions options = settings.corpus;
    if (shuffle == Shuffle::no)
        options.data_weights.clear();
    return options;
}

}  // namespace

Feed::Feed(DataContext& context,
           const std::string& data,
           const RunSettings& settings,
           const Parts& parts,
           const Model& model,
           Shuffle shuffle)
    : corpus_{context, data, settings.schema, corpus_options_of(settings, shuffle)},
      collator_{parts.batchings.get(settings.options().batching)(settings.options().parts)},
      seed_{settings.options().seed},
      shuffle_{shuffle},
      loader_{corpus_,
              *collator_,
              {.seed = settings.options().seed,
               .shuffle = shuffle,
               .device = settings.device,
               .loss_terms = model.loss_terms().size()}} {}

BatchPlan Feed::plan(const BatchSize& size) {
    return make_batch_plan(corpus_, size, seed_, shuffle_);
}

Replica::Replica(const MpiEnvironment& environment,
                 const HostComm& world,
                 const RunSettings& settings,
                 const Parts& parts,
                 const RunFolder* folder,
                 const PipelineLayout* layout,
                 FirstValues first)
    : communicator_{make_communicator(
          world, environment, settings.device, communicator_options(settings.options()))},
      data_{world, environment.thread_support() == ThreadSupport::multiple},
      process_mb_{memory_in_use_mb(settings.device)},
      workers_{workers_of(layout, world.size())},
      model_{[&] {
          const std::optional<UnitRange> held = held_units(layout, world.rank());
          return build_model(world, settings, parts, held ? &*held : nullptr, first);
      }()},
      parameters_{agree_on(world, [&] { return flat_parameters(*model_); })},
      feed_{data_, required_data(settings.options()), settings, parts, *model_, Shuffle::yes},
      plan_{agree_on(world, [&] { return feed_.plan(settings.batch_size()); })},
      rank_{world.rank()} {
    const Options& options = settings.options();
    if (layout != nullptr) {
        // Sums of several workers go on while backward does, and late ones while the next does.
        const bool sums_at_end = layout->workers.size() == 1 && options.trainer.staleness == 0;
        stage_.emplace(environment,
                       world,
                       *layout,
                       *model_,
                       settings.device,
                       communicator_options(settings.options()),
                       PeerChannel::Options{.lacks_cores = settings.lacks_cores(world.rank())},
                       sums_at_end ? PairSums::by_messages : PairSums::all_reduced);
        parameters_.count_elsewhere(stage_->shared().spoken_for_elsewhere());
    } else {
        whole_pass_ = make_whole_pass(*model_);
    }
    agree_on(world, [&] {
        const RecomputeChoice choice = settings.recompute[static_cast<std::size_t>(world.rank())];
        model_->recompute(stage_ ? recomputed_in_stage(choice, *model_)
                                 : recomputed_from_start(choice, *model_));
    });
    if (model_->has_groups(Mode::train))
        plan_.set_groups(options.norm_group);
    check_best_by(options.trainer.best_by, result_names(*model_));
    if (!options.valid_data.empty())
        valid_feed_.emplace(data_, options.valid_data, settings, parts, *model_, Shuffle::no);
    make_optimizer_ = [make = parts.optimizers.get(options.parts.optimizer.name),
                       values = options.parts](FlatParameters& parameters) {
        std::unique_ptr<Optimizer> optimizer = make(parameters, values);
        const double decay = values.optimizer.ema;
        return decay > 0 ? make_averaged(std::move(optimizer), parameters, decay)
                         : std::move(optimizer);
    };
    const auto small = agree_on(world, [&] { return small_optimizer(parts, options.parts); });
    memory_.emplace(
        world,
        settings,
        MemoryAccount::Trained{
            .elements = parameters_.all_numel(),
            .frozen = frozen_elements(*model_),
            .element_bytes = static_cast<std::int64_t>(parameters_.values().element_size()),
            .small = *small.optimizer,
            .bucket_mb = static_cast<double>(bucket_bytes(settings, parameters_)) / bytes_of_mib,
            .is_chain = model_->is_chain()},
        own_memory(settings),
        folder != nullptr);
    if (stage_)
        note_stages(world);
    agree_on(world, [&] {
        shard_state(settings, parameters_, memory_->room_for_state(), world.rank());
        memory_->note_shards(parameters_);
        if (settings.lends_to_checkpoints)
            memory_->leave_out_copies();
        else
            memory_->leave_out_copies_where_short();
        memory_->check(settings);
        while (std::ssize(gradient_sets_) < options.trainer.staleness)
            gradient_sets_.push_back(make_gradient_set(parameters_, *model_));
        optimizer_ = make_optimizer_(parameters_);
        check_follows_shards(*optimizer_, parameters_, options.parts.optimizer.name);
    });
    if (!parameters_.state_ranges().empty())
        optimizer_->use_sum(
            [this](const at::Tensor& sums) { communicator_->all_reduce_sum(sums); });
    checkpoint_files_ = agree_on(world, [&] { return files_with({}); });
    if (folder != nullptr)
        checkpoints_ = std::make_unique<CheckpointWriter>(
            world,
            folder->checkpoints(),
            files_with(gradient_sets_),
            CheckpointWriter::Options{
                .keep_last = options.keep_last,
                .threads_may_call_mpi = environment.thread_support() == ThreadSupport::multiple,
                .copies = memory_->has_copies(world.rank())});
    if (stage_) {
        stage_->shared().copy_from_first(parameters_, nullptr);
        if (first == FirstValues::drawn)  // a checkpoint brings them otherwise
            stage_->shared().copy_frozen_from_first(*model_);
    } else {
        share_model(*communicator_, parameters_, *model_);
    }
    optimizer_->begin(parameters_);
    PeakMemory::release();  // what was drawn and measured with
    memory_->note_resident(world, resident_memory_mb());
    warn_if_inexact(*model_);
}

// A model that comes from outside was there before this one.
OwnMemory Replica::own_memory(const RunSettings& settings) const {
    const std::int64_t caches =
        feed_.corpus().cache_bytes() + (valid_feed_ ? valid_feed_->corpus().cache_bytes() : 0);
    const std::int64_t elements = parameters_.values().numel() + frozen_elements(*model_);
    const double of_model =
        model_->initialises_itself() && settings.device.is_cpu()
            ? static_cast<double>(elements * parameters_.values().element_size()) / bytes_of_mib
            : 0;
    return {.process_mb = std::max(0.0, process_mb_ - of_model),
            .data_mb = static_cast<double>(caches) / bytes_of_mib /
                       settings.topology.ranks_on_host_of(communicator_->rank())};
}

void Replica::note_stages(const HostComm& world) {
    const std::vector<std::int64_t> elements = world.all_gather(parameters_.values().numel());
    std::int64_t in_pairs = 0;
    for (const FlatParameters::Parameter& parameter : parameters_.parameters())
        if (const SharedParameters& shared = stage_->shared();
            shared.pair(shared.group_of(parameter.name)) != nullptr)
            in_pairs += parameter.numel;
    const std::vector<std::int64_t> received = world.all_gather(in_pairs);
    const std::vector<std::int64_t> frozen = world.all_gather(frozen_elements(*model_));
    if (world.all_reduce(std::int64_t{stage_->shared().has_any()}, ReduceOp::max) == 0)
        memory_->note_no_sums();
    for (const WorkerLayout& worker : stage_->layout().workers)
        for (std::size_t s = 0; s < worker.ranks.size(); ++s) {
            const int rank = worker.ranks[s];
            const auto r = static_cast<std::size_t>(rank);
            memory_->note_stage(rank, elements[r], received[r], frozen[r]);
            if (!worker.activations_mb.empty())
                memory_->note_stage_activations(rank, worker.activations_mb[s]);
        }
}

void Replica::identify_data(const RunIdentity* before) {
    const auto identity = [](const Feed& feed, const std::optional<CorpusIdentity>* known) {
        return feed.corpus().identity(known != nullptr && *known ? &**known : nullptr);
    };
    data_identity_ = identity(feed_, before != nullptr ? &before->data : nullptr);
    if (valid_feed_)
        valid_data_identity_ =
            identity(*valid_feed_, before != nullptr ? &before->valid_data : nullptr);
    else if (before != nullptr)
        valid_data_identity_ = before->valid_data;  // what the best model was judged by
}

void Replica::use_average() {
    constexpr std::int64_t sent_bytes = 8 << 20;
    ValueGather gather{parameters_, *communicator_, sent_bytes};
    AveragedWeights{parameters_, *optimizer_, gather}.stay();
}

std::vector<CheckpointFile> Replica::files_with(std::span<const GradientSet> sums) const {
    CheckpointHolders holders{.rank = rank_};
    if (stage_)
        holders.of_parameters = stage_->holders();
    constexpr std::int64_t file_bytes = 256 << 20;
    return hetseq::checkpoint_files(*model_, parameters_, *optimizer_, file_bytes, holders, sums);
}

std::vector<GradientSet> Replica::sets_for(std::size_t sums) const {
    const std::size_t own = std::min(sums, gradient_sets_.size());
    std::vector<GradientSet> sets;
    while (sets.size() < sums - own)
        sets.push_back(make_gradient_set(parameters_, *model_));
    sets.insert(sets.end(),
                gradient_sets_.begin(),
                gradient_sets_.begin() + static_cast<std::ptrdiff_t>(own));
    return sets;
}

std::int64_t Replica::parameter_count() const {
    std::int64_t count = 0;
    for (const auto& parameter : parameters_.all_parameters())
        count += parameter.numel;
    return count;
}

}  // namespace hetseq
