#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "hetseq/util/precision.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/pipeline/shared_parameters.hpp"
#include "hetseq/train/pipeline/stage.hpp"

#include "model/small_models.hpp"

/// A model that ranks train as a pipeline, or one alone, and what it is fed with.
namespace hetseq::test {

/// A pipeline: its stages' units and ranks.
struct StagedWorker {
    std::vector<UnitRange> units;
    std::vector<int> ranks;
};

/// What is trained, and how it is cut; `units` are those of the stages, none: one rank has all.
struct StagedCase {
    ModelCase model;
    std::vector<UnitRange> units = {};
    std::vector<int> ranks = {};            // by stage; empty: in their order
    std::vector<StagedWorker> others = {};  // pipelines beside this one
    Precision precision = Precision::fp32;
    std::int64_t recomputed = 0;  // layers, at most all that a stage has
    at::Device device = at::kCPU;

    StagedCase whole() const {
        return {.model = model, .precision = precision, .recomputed = recomputed, .device = device};
    }
    std::vector<int> stage_ranks() const;
    /// All pipelines; none: one rank has all.
    std::vector<StagedWorker> workers() const;
    std::size_t chain_length() const { return model.make()->chain().size(); }
    /// The same in other stages.
    StagedCase cut(const std::vector<UnitRange>& ranges) const {
        StagedCase other = *this;
        other.units = ranges;
        return other;
    }
};

/// Samples [0, samples) of a model's, in micro-batches. The weights are those of `collator_of`.
LoadedShare share_of(const ModelCase& model,
                     std::int64_t samples,
                     std::int64_t micro_batch,
                     std::shared_ptr<DeviceTransfer> transfer = make_host_transfer());

/// The same of the samples of a slice.
LoadedShare share_of(const ModelCase& model,
                     Slice slice,
                     std::int64_t micro_batch,
                     std::shared_ptr<DeviceTransfer> transfer = make_host_transfer());

/// The model's rows of the sample ids that it is given, which follow each other. The weight of loss
/// term j is j + 1 for each sample.
std::unique_ptr<Collator> collator_of(const ModelCase& model);

/// Parameters that several units read.
std::set<std::string> tied_names(const ModelCase& model);

/// That of `chain_models`.
ModelCase model_named(const std::string& name);

/// All cuts of so many units into `stages`.
std::vector<std::vector<UnitRange>> all_cuts(std::size_t units, std::size_t stages);

/// What one rank has of a model that is trained: its stage, or everything.
class StagedReplica {
public:
    /// Collective over `world`, whose ranks are the stages of the pipelines; one rank where there
    /// are none.
    StagedReplica(const StagedCase& staged, const HostComm& world);

    Model& model() noexcept { return *model_; }
    Pass& pass() noexcept { return *pass_; }
    FlatParameters& parameters() noexcept { return *parameters_; }
    GradientReducer& reducer() noexcept { return *reducer_; }
    Communicator& communicator() noexcept { return *communicator_; }
    PeerChannel* channel() noexcept { return channel_.get(); }                 // null: no stages
    const SharedParameters* shared() const noexcept { return shared_.get(); }  // likewise
    const ParameterHolders& holders() const noexcept { return holders_; }
    const Stage& stage() const noexcept { return stage_; }
    /// The gradients of what this rank holds, by name.
    std::map<std::string, at::Tensor> gradients() const {
        return by_name(parameters_->gradients());
    }
    std::map<std::string, at::Tensor> values() const { return by_name(parameters_->values()); }

private:
    std::map<std::string, at::Tensor> by_name(const at::Tensor& flat) const;
    void make_stage(const HostComm& world, int worker, bool is_alone);

    std::unique_ptr<Communicator> communicator_;
    std::shared_ptr<Model> model_;
    at::Device device_;
    std::unique_ptr<FlatParameters> parameters_;
    Stage stage_;
    ParameterHolders holders_;
    std::unique_ptr<HostComm> world_;
    std::unique_ptr<SharedParameters> shared_;
    std::unique_ptr<PeerChannel> channel_;
    std::unique_ptr<Pass> pass_;
    std::unique_ptr<GradientReducer> reducer_;
};

}  // namespace hetseq::test
