#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/worker_map.hpp"
#include "hetseq/session/pipeline/stage_rank.hpp"
#include "hetseq/session/ranks/rank_memory.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;
class RunFolder;
struct RunIdentity;

/// Warns where the model says that what it computes depends on how batches are cut.
void warn_if_inexact(const Model& model);

/// What a new model's parameters are: drawn from the seed or read from --init-model, or, where a
/// checkpoint's come next, zero in place of what would be drawn.
enum class FirstValues { drawn, zero };

/// Collective. The model as options say, on the device: initialised from the seed or by itself, or
/// read from --init-model.
/// `held`: the units that this rank holds, as a stage of a pipeline; null: the whole model.
std::shared_ptr<Model> build_model(const HostComm& world,
                                   const RunSettings& settings,
                                   const Parts& parts,
                                   const UnitRange* held = nullptr,
                                   FirstValues first = FirstValues::drawn);

/// A corpus, and the loader that reads it batch by batch.
class Feed {
public:
    /// Collective.
    Feed(DataContext& context,
         const std::string& data,
         const RunSettings& settings,
         const Parts& parts,
         const Model& model,
         Shuffle shuffle);

    Loader& loader() noexcept { return loader_; }
    /// Its batches.
    BatchPlan plan(const BatchSize& size);
    Corpus& corpus() noexcept { return corpus_; }
    const Corpus& corpus() const noexcept { return corpus_; }

private:
    Corpus corpus_;
    std::unique_ptr<Collator> collator_;
    std::uint64_t seed_;
    Shuffle shuffle_;
    Loader loader_;
};

/// The model that a rank trains, with its optimizer, their checkpoints and the data. The members
/// stand in the order of lifetime.
class Replica {
public:
    /// Collective. Throws on all ranks if something is wrong with model, data or devices. `folder`,
    /// where checkpoints are saved, may be null, and `layout` too: then each rank has a whole one.
    Replica(const MpiEnvironment& environment,
            const HostComm& world,
            const RunSettings& settings,
            const Parts& parts,
            const RunFolder* folder,
            const PipelineLayout* layout = nullptr,
            FirstValues first = FirstValues::drawn);

    Communicator& communicator() noexcept { return *communicator_; }
    const WorkerMap& workers() const noexcept { return workers_; }
    Pass& pass() noexcept { return stage_ ? stage_->pass() : *whole_pass_; }
    /// Null: each rank has a whole replica.
    const StageRank* stage() const noexcept { return stage_ ? &*stage_ : nullptr; }
    Model& model() noexcept { return *model_; }
    const Model& model() const noexcept { return *model_; }
    FlatParameters& parameters() noexcept { return parameters_; }
    std::int64_t parameter_count() const;  // trained ones, of all stages
    /// Collective. Identifies the data that it is fed with, by the rows that the checkpoint's
    /// identity `before` knows; it may be null. Throws IoError on all ranks.
    void identify_data(const RunIdentity* before);
    /// Empty before `identify_data`.
    const std::optional<CorpusIdentity>& data_identity() const noexcept { return data_identity_; }
    const std::optional<CorpusIdentity>& valid_data_identity() const noexcept {
        return valid_data_identity_;
    }
    Optimizer& optimizer() noexcept { return *optimizer_; }
    /// One more of the same kind and options, for other parameters.
    std::unique_ptr<Optimizer> make_optimizer(FlatParameters& parameters) const {
        return make_optimizer_(parameters);
    }
    /// What the ranks' memory holds, by what is known when the optimizer is made.
    MemoryAccount& memory() noexcept { return *memory_; }
    const MemoryAccount& memory() const noexcept { return *memory_; }
    Feed& feed() noexcept { return feed_; }
    const Feed& feed() const noexcept { return feed_; }
    const BatchPlan& plan() const noexcept { return plan_; }
    Feed* valid_feed() noexcept { return valid_feed_ ? &*valid_feed_ : nullptr; }  // null: none
    CheckpointWriter* checkpoints() noexcept { return checkpoints_.get(); }        // null: none
    /// The model's file comes first.
    const std::vector<CheckpointFile>& checkpoint_files() const noexcept {
        return checkpoint_files_;
    }
    /// The same with those of summed gradients that wait, in order.
    std::vector<CheckpointFile> files_with(std::span<const GradientSet> sums) const;
    /// Collective. The model gets, for good, the average that the optimizer keeps of its
    /// parameters, if it keeps one.
    void use_average();
    /// As many as the staleness, beside the parameters' own.
    const std::vector<GradientSet>& gradient_sets() const noexcept { return gradient_sets_; }
    /// For so many sums of a checkpoint. The last ones are those; where they are too few, the first
    /// ones are of new memory.
    std::vector<GradientSet> sets_for(std::size_t sums) const;

private:
    OwnMemory own_memory(const RunSettings& settings) const;
    void note_stages(const HostComm& world);

    std::unique_ptr<Communicator> communicator_;
    DataContext data_;
    double process_mb_;  // that the device held before the model was made
    WorkerMap workers_;
    std::shared_ptr<Model> model_;
    FlatParameters parameters_;
    std::unique_ptr<Pass> whole_pass_;
    std::optional<StageRank> stage_;
    Feed feed_;
    BatchPlan plan_;
    std::optional<Feed> valid_feed_;
    std::optional<CorpusIdentity> data_identity_;
    std::optional<CorpusIdentity> valid_data_identity_;
    std::function<std::unique_ptr<Optimizer>(FlatParameters&)> make_optimizer_;
    std::optional<MemoryAccount> memory_;
    std::unique_ptr<Optimizer> optimizer_;
    int rank_;
    std::vector<GradientSet> gradient_sets_;
    std::vector<CheckpointFile> checkpoint_files_;
    std::unique_ptr<CheckpointWriter> checkpoints_;
};

}  // namespace hetseq
