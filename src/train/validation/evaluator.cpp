#include "hetseq/train/validation/evaluator.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/available_memory.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/validation/kept_memory.hpp"
#include "hetseq/train/worker_map.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t batches_ahead = 2;

// Losses, metrics, the sums of scores, and weights of this rank's shares.
class Sums {
public:
    Sums(Pass& pass, CorpusScorer* scorer)
        : pass_{pass},
          scorer_{scorer},
          score_sums_(scorer != nullptr ? scorer->sums() : 0),
          results_{pass.model().loss_terms().size() + pass.model().metrics().size()},
          weights_(pass.model().loss_terms().size()) {}

    /// `speaks`: of the ranks that have this share, this one tells of its weights.
    void add(const LoadedShare& share, bool speaks) {
        const auto take = [&](const MicroBatch& micro_batch, const ForwardResult& result) {
            add(result);
            if (scorer_ != nullptr)
                scorer_->add(micro_batch, result, score_sums_);
        };
        pass_.forward(share, {.mode = Mode::evaluate}, take);
        for (std::size_t j = 0; speaks && j < weights_.size(); ++j)
            weights_[j] += share.weights()[j];
    }

    std::vector<double> values() const {
        std::vector<double> values(results_);
        if (device_sums_.defined()) {
            const at::Tensor sums = device_sums_.to(at::kCPU);
            std::copy_n(sums.const_data_ptr<double>(), results_, values.begin());
        }
        values.insert(values.end(), score_sums_.begin(), score_sums_.end());
        values.insert(values.end(), weights_.begin(), weights_.end());
        return values;
    }

private:
    void add(const ForwardResult& result) {
        std::vector<at::Tensor> values = result.losses;
        values.insert(values.end(), result.metrics.begin(), result.metrics.end());
        for (at::Tensor& value : values)
            value = value.to(at::kDouble);
        const at::Tensor stacked = at::stack(values);
        device_sums_ = device_sums_.defined() ? device_sums_.add_(stacked) : stacked;
    }

    Pass& pass_;
    CorpusScorer* scorer_;  // null: none
    std::vector<double> score_sums_;
    std::size_t results_;     // losses, then metrics
    at::Tensor device_sums_;  // (results), fp64, on the model's device
    std::vector<double> weights_;
};

// Collective. `cuts`: this rank's key of all ranks' slices.
[[noreturn]] void throw_unlike_cuts(const HostComm& world, std::uint64_t cuts) {
    const std::vector<std::int64_t> keys = world.all_gather(static_cast<std::int64_t>(cuts));
    std::vector<int> odd;
    for (std::size_t r = 0; r < keys.size(); ++r)
        if (keys[r] != keys.front())
            odd.push_back(static_cast<int>(r));
    throw AgreedError(
        ExitCode::internal,
        Explanation{"internal error: the ranks cut the validation data in unlike ways",
                    odd.empty() ? "" : name_ranks(odd) + " otherwise than rank 0",
                    "use the same build on all hosts, and please report this"});
}

double normalised(double sum, double weight) {
    return weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight;
}

// What `Sums::values` has, one after the other.
struct SumsByKind {
    SumsByKind(std::span<const double> sums, const Model& model)
        : losses{sums.first(model.loss_terms().size())},
          metrics{sums.subspan(losses.size(), model.metrics().size())},
          scores{sums.subspan(losses.size() + metrics.size(),
                              sums.size() - 2 * losses.size() - metrics.size())},
          weights{sums.last(losses.size())} {}

    std::span<const double> losses;
    std::span<const double> metrics;
    std::span<const double> scores;   // of the corpus's scorer, if there is one
    std::span<const double> weights;  // of losses
};

// Losses, metrics and perplexities.
Evaluation evaluation_of(const Model& model, const SumsByKind& sums) {
    Evaluation evaluation;
    const auto terms = model.loss_terms();
    for (std::size_t j = 0; j < terms.size(); ++j)
        evaluation.losses.push_back({.name = terms[j],
                                     .value = normalised(sums.losses[j], sums.weights[j]),
                                     .has_weight = sums.weights[j] != 0});
    const auto metrics = model.metrics();
    for (std::size_t m = 0; m < metrics.size(); ++m) {
        const double weight = sums.weights[metrics[m].term];
        evaluation.metrics.push_back({.name = metrics[m].name,
                                      .value = normalised(sums.metrics[m], weight),
                                      .is_share = metrics[m].is_share,
                                      .has_weight = weight != 0});
    }
    for (const PerplexitySchema& perplexity : model.perplexities())
        evaluation.metrics.push_back({.name = perplexity.name,
                                      .value = std::exp(evaluation.value_of(perplexity.of)),
                                      .is_share = false,
                                      .has_weight = evaluation.has_weight(perplexity.of)});
    return evaluation;
}

}  // namespace

Evaluator::Evaluator(const HostComm& world,
                     const WorkerMap& workers,
                     Pass& pass,
                     Loader& loader,
                     const BatchPlan& plan,
                     SharePlan& shares)
    : world_{world.duplicate()},
      workers_{workers},
      pass_{pass},
      model_{pass.model()},
      loader_{loader},
      plan_{plan},
      shares_{shares} {
    // Settled now, so that `run` has no collective call that a failing rank could miss.
    if (plan_.group_size() > 0)  // batches of any size
        for (std::int64_t batch = 0; batch < plan_.batches_per_epoch(); ++batch)
            shares_.cut(plan_.batch(batch));
    for (const std::int64_t batch : {std::int64_t{0}, plan_.batches_per_epoch() - 1})
        shares_.cut(plan_.batch(batch));
}

void Evaluator::request(std::int64_t batch) {
    const GlobalBatch positions = plan_.batch(batch);
    const std::vector<Slice> slices = shares_.cut(positions).slices;
    for (const Slice& slice : slices)
        cuts_ = mix_keys(cuts_, static_cast<std::uint64_t>(slice.end));
    loader_.request(positions, workers_.loaded(slices), cap_);
}

// Losses, metrics, sums of scores, then weights, summed over this rank's shares. A failure of this
// rank alone is kept until the end, because the other ranks go on requesting and reading together
// with this one. Ranks that compute with it wait for it: there it ends the job.
std::vector<double> Evaluator::add_up(CorpusScorer* scorer, std::exception_ptr& failure) {
    const std::int64_t batches = plan_.batches_per_epoch();
    Sums sums{pass_, scorer};
    const bool speaks = workers_.leads(world_.rank());
    const auto attempt = [&](auto&& work) {
        try {
            work();
        } catch (...) {
            if (pass_.is_shared())
                throw;
            failure = failure ? failure : std::current_exception();
        }
    };
    for (std::int64_t batch = 0; batch < std::min(batches_ahead, batches); ++batch)
        request(batch);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
        std::optional<LoadedShare> share;
        attempt([&] {
            activity::enter(Phase::validating);
            share.emplace(loader_.take());
            tiling_.add(
                Tiling(share->batch(), speaks ? share->slice() : Slice{}, world_.rank() == 0));
        });
        if (batch + batches_ahead < batches)
            request(batch + batches_ahead);
        if (share && !failure)
            attempt([&] { sums.add(*share, speaks); });
    }
    return sums.values();
}

// Rank 0 alone has what all ranks kept, and computes.
std::vector<double> Evaluator::scores(CorpusScorer& scorer, std::span<const double> sums) const {
    const std::int64_t bytes = world_.all_reduce(scorer.kept_bytes(), ReduceOp::sum);
    if (bytes > 0)
        agree_on(world_, [&] {
            if (world_.rank() == 0)
                check_room_for_kept(bytes, available_memory_mb());
        });
    const std::string own = agree_on(world_, [&] { return scorer.kept(); });
    const std::vector<std::string> kept = world_.gather(own, 0);
    std::vector<double> values(model_.scores().size());
    agree_on(world_, [&] {
        if (world_.rank() != 0)
            return;
        activity::enter(Phase::validating);
        const std::vector<double> computed = scorer.values(sums, kept);
        HETSEQ_ASSERT(computed.size() == values.size());
        values = computed;
    });
    world_.broadcast(std::as_writable_bytes(std::span(values)), 0);
    return values;
}

// Sums of all ranks, as `Sums::values` has them. Collective.
std::vector<double> Evaluator::sum_up(CorpusScorer* scorer) {
    std::exception_ptr failure;
    tiling_ = {};
    std::vector<double> sums = add_up(scorer, failure);
    agree(world_, failure);
    const auto tiling = tiling_.values();
    sums.insert(sums.end(), tiling.begin(), tiling.end());
    world_.all_reduce(std::span<double>(sums), ReduceOp::sum);
    if (!Tiling::holds(std::span{sums}.last(Tiling::terms)))
        throw_unlike_cuts(world_, cuts_);
    sums.resize(sums.size() - Tiling::terms);
    return sums;
}

Evaluation Evaluator::run(const MicroBatchCap& most) {
    cap_ = smaller(shares_.cap(), most);
    const auto begin = std::chrono::steady_clock::now();
    const at::NoGradGuard no_grad;
    const std::unique_ptr<CorpusScorer> scorer =
        agree_on(world_, [&] { return model_.corpus_scorer(); });
    const std::vector<double> sums = sum_up(scorer.get());
    const SumsByKind by_kind(sums, model_);
    if (std::ranges::all_of(by_kind.weights, [](double weight) { return weight == 0; }))
        log::warn("none of the " + std::to_string(plan_.samples()) +
                  " samples that are evaluated has a weight in any loss, so that its value is not "
                  "known: give data that have targets");
    Evaluation evaluation = evaluation_of(model_, by_kind);
    if (scorer) {
        const std::vector<std::string> names = model_.scores();
        const std::vector<double> values = scores(*scorer, by_kind.scores);
        for (std::size_t i = 0; i < names.size(); ++i)
            evaluation.metrics.push_back({.name = names[i],
                                          .value = values[i],
                                          .is_share = model_.score_is_share(names[i])});
    }
    evaluation.samples = plan_.samples();
    evaluation.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return evaluation;
}

}  // namespace hetseq
