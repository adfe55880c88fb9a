#include "train/pipeline/staged_replica.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <ATen/ops/arange.h>

#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/train/pipeline/pipeline_pass.hpp"

#include "model/chain_models.hpp"
#include "test_world.hpp"

namespace hetseq::test {

namespace {

constexpr std::uint64_t seed = 3;

class ModelCollator final : public Collator {
public:
    explicit ModelCollator(const ModelCase& model)
        : model_{model}, terms_{model.make()->loss_terms().size()} {}

    MicroBatch collate(const TensorDict&, const at::Tensor& sample_ids) const override {
        MicroBatch batch = model_.batch(sample_ids[0].item<std::int64_t>(), sample_ids.numel());
        batch.weights.clear();
        for (std::size_t term = 0; term < terms_; ++term)
            batch.weights.push_back(static_cast<double>(term + 1) *
                                    static_cast<double>(sample_ids.numel()));
        return batch;
    }

private:
    ModelCase model_;
    std::size_t terms_;
};

ChainCut cut_of(const StagedWorker& worker) {
    ChainCut cut{.units = worker.units};
    for (std::size_t stage = 0; stage < worker.units.size(); ++stage)
        cut.most_in_flight.push_back(most_in_flight(worker.units.size(), stage));
    return cut;
}

}  // namespace

std::vector<int> StagedCase::stage_ranks() const {
    if (!ranks.empty())
        return ranks;
    std::vector<int> in_order(units.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    return in_order;
}

std::vector<StagedWorker> StagedCase::workers() const {
    std::vector<StagedWorker> all = others;
    if (!units.empty())
        all.insert(all.begin(), {units, stage_ranks()});
    return all;
}

std::unique_ptr<Collator> collator_of(const ModelCase& model) {
    return std::make_unique<ModelCollator>(model);
}

LoadedShare share_of(const ModelCase& model,
                     std::int64_t samples,
                     std::int64_t micro_batch,
                     std::shared_ptr<DeviceTransfer> transfer) {
    return share_of(model, Slice{0, samples}, micro_batch, std::move(transfer));
}

LoadedShare share_of(const ModelCase& model,
                     Slice slice,
                     std::int64_t micro_batch,
                     std::shared_ptr<DeviceTransfer> transfer) {
    static std::map<std::string, std::unique_ptr<Collator>> collators;  // outlive shares
    auto& collator = collators[model.name];
    if (collator == nullptr)
        collator = collator_of(model);
    LoadedShare share{
        {.begin = 0, .end = slice.end},
        slice,
        {.fields = {}, .ragged = {}, .sample_ids = at::arange(slice.begin, slice.end, at::kLong)},
        {.collator = collator.get(),
         .transfer = std::move(transfer),
         .loss_terms = model.make()->loss_terms().size()},
        {.samples = micro_batch}};
    share.collate();
    return share;
}

std::set<std::string> tied_names(const ModelCase& model) {
    std::set<std::string> once, twice;
    for (const ChainUnit& unit : model.make()->chain())
        for (const std::string& name : unit.parameters)
            if (!once.insert(name).second)
                twice.insert(name);
    return twice;
}

ModelCase model_named(const std::string& name) {
    for (const ModelCase& model : chain_models())
        if (model.name == name)
            return model;
    throw std::invalid_argument(name);
}

std::vector<std::vector<UnitRange>> all_cuts(std::size_t units, std::size_t stages) {
    if (stages == 1)
        return {{{0, units}}};
    std::vector<std::vector<UnitRange>> cuts;
    for (std::size_t begin = stages - 1; begin < units; ++begin)
        for (std::vector<UnitRange> front : all_cuts(begin, stages - 1)) {
            front.push_back({begin, units});
            cuts.push_back(std::move(front));
        }
    return cuts;
}

StagedReplica::StagedReplica(const StagedCase& staged, const HostComm& world)
    : communicator_{make_communicator(world, environment(), staged.device)},
      model_{staged.model.make()},
      device_{staged.device} {
    const std::vector<StagedWorker> workers = staged.workers();
    int own = 0;
    for (int w = 0; w < static_cast<int>(workers.size()); ++w) {
        const StagedWorker& worker = workers[static_cast<std::size_t>(w)];
        add_holders(*model_, cut_of(worker), worker.ranks, holders_);
        const auto found = std::find(worker.ranks.begin(), worker.ranks.end(), world.rank());
        if (found == worker.ranks.end())
            continue;
        own = w;
        stage_ = stage_of(*model_,
                          cut_of(worker),
                          worker.ranks,
                          static_cast<std::size_t>(found - worker.ranks.begin()));
    }
    if (!workers.empty())
        model_->hold(stage_.units);
    initialise_parameters(*model_, seed);
    model_->to(device_, staged.precision);
    model_->recompute(std::min(staged.recomputed, model_->recomputable_layers()));
    parameters_ = std::make_unique<FlatParameters>(
        *model_, [this](const std::string& name) { return model_->decays(name); });
    if (!workers.empty())
        make_stage(world, own, workers.size() == 1);
    else
        pass_ = make_whole_pass(*model_);
    constexpr std::int64_t bucket_bytes = 1 << 16;
    reducer_ = std::make_unique<GradientReducer>(
        *parameters_, *communicator_, bucket_bytes, std::nullopt, shared_.get());
}

void StagedReplica::make_stage(const HostComm& world, int worker, bool is_alone) {
    world_ = std::make_unique<HostComm>(world.split(worker));
    shared_ = std::make_unique<SharedParameters>(
        world, environment(), device_, holders_, CommunicatorOptions{});
    parameters_->count_elsewhere(shared_->spoken_for_elsewhere());
    std::set<int> peers;
    for (const int peer : {stage_.previous, stage_.next})
        if (peer != Stage::nobody)
            peers.insert(peer);
    if (is_alone)
        for (const int partner : shared_->partners())
            peers.insert(partner);
    channel_ = std::make_unique<PeerChannel>(world,
                                             std::vector<int>(peers.begin(), peers.end()),
                                             device_,
                                             environment().thread_support(),
                                             PeerChannel::Options{});
    if (is_alone)
        shared_->sum_pairs_by(*channel_);
    pass_ = make_pipeline_pass(*model_, stage_, *world_, *channel_);
}

std::map<std::string, at::Tensor> StagedReplica::by_name(const at::Tensor& flat) const {
    std::map<std::string, at::Tensor> tensors;
    for (const FlatParameters::Parameter& parameter : parameters_->parameters())
        tensors[parameter.name] = flat.narrow(0, parameter.offset, parameter.numel).clone();
    return tensors;
}

}  // namespace hetseq::test
