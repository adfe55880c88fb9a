#include "hetseq/train/waves/wave_ring.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros_like.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/update_step.hpp"

namespace hetseq {

namespace {

void add_update_sums(GradientSet& set, const Model& model) {
    if (const at::Tensor sums = model.update_sums(); sums.defined())
        set.update_sums = at::zeros_like(sums);
}

}  // namespace

GradientSet make_gradient_set(const FlatParameters& parameters, const Model& model) {
    GradientSet set = parameters.new_gradient_set();
    add_update_sums(set, model);
    return set;
}

WaveRing::WaveRing(Model& model,
                   FlatParameters& parameters,
                   GradientReducer& reducer,
                   UpdateStep& step,
                   Start start)
    : model_{model},
      parameters_{parameters},
      reducer_{reducer},
      step_{step},
      norm_{parameters},
      staleness_{static_cast<std::size_t>(start.staleness)} {
    HETSEQ_ASSERT(start.sums.size() == start.pending.size());
    for (std::size_t i = 0; i < start.sums.size(); ++i) {
        Wave& wave = *waves_.emplace_back(make_wave(start.sums[i], reducer.new_sent()));
        wave.is_summed = true;
        wave.figures.told = start.pending[i];
        wave.figures.compute_ms.resize(start.ranks);
        wave.verdict = verdict_on(wave.figures.told.losses, wave.figures.told.gradient_norm);
    }
    if (staleness_ == 0 && waves_.empty())
        return;
    GradientSet own = parameters.gradient_set();
    add_update_sums(own, model);
    free_.push_back(make_wave(std::move(own), reducer.sent()));
    for (const GradientSet& set : start.sets)
        if (std::none_of(start.sums.begin(), start.sums.end(), [&](const GradientSet& used) {
                return used.flat.is_same(set.flat);
            }))
            free_.push_back(make_wave(set, reducer.new_sent()));
    while (free_.size() + waves_.size() <= staleness_)
        free_.push_back(make_wave(make_gradient_set(parameters, model), reducer.new_sent()));
}

std::unique_ptr<Wave> WaveRing::make_wave(GradientSet set, at::Tensor sent) const {
    return std::make_unique<Wave>(
        Wave{.gradients = std::move(set),
             .sent = std::move(sent),
             .status = {model_.loss_terms().size(),
                        parameters_.values().device(),
                        parameters_.is_cut() ? parameters_.all_blocks() : 0}});
}

Wave& WaveRing::begin_next() {
    HETSEQ_ASSERT(!free_.empty());
    waves_.push_back(std::move(free_.back()));
    free_.pop_back();
    Wave& wave = *waves_.back();
    wave.is_summed = false;
    return wave;
}

void WaveRing::compute(LoadedShare share,
                       std::span<const double> weights,
                       const ForwardContext& context,
                       UpdateFigures figures) {
    Wave& wave = begin_next();
    wave.figures = std::move(figures);
    wave.share.emplace(std::move(share));
    wave.figures.told.scale = step_.loss_scale().value();
    parameters_.use(wave.gradients);
    step_.run_alone(*wave.share, weights, context, wave.status, [&] { start(wave); });
    take_measured(step_.timing().times, wave.figures.times);
    wave.figures.padding = wave.share->padding();
}

// Where ranks tell of their sums behind these, the first wave's status must not queue behind the
// new wave's buckets: they would be waited for, too.
void WaveRing::start(Wave& wave) {
    if (parameters_.is_cut() && waves_.size() > staleness_)
        sum(*waves_.front());
    if (wave.gradients.update_sums.defined())
        wave.gradients.update_sums.copy_(model_.update_sums());
    wave.works = reducer_.start_beside(wave.gradients.flat, wave.sent, wave.gradients.update_sums);
    if (!parameters_.is_cut())
        wave.status_work = reducer_.start_status(wave.status.slots());
}

const Wave& WaveRing::take() {
    Wave& wave = *waves_.front();
    sum(wave);
    parameters_.use(wave.gradients);
    if (wave.gradients.update_sums.defined())
        model_.update_sums().copy_(wave.gradients.update_sums);
    return wave;
}

// Sets beyond those that take turns were read from a checkpoint of a larger staleness.
void WaveRing::release() {
    waves_.front()->share.reset();
    if (free_.size() + waves_.size() <= staleness_ + 1)
        free_.push_back(std::move(waves_.front()));
    waves_.pop_front();
    if (waves_.empty())
        parameters_.use(free_.front()->gradients);
}

void WaveRing::sum_all() {
    for (const std::unique_ptr<Wave>& wave : waves_)
        sum(*wave);
}

void WaveRing::sum(Wave& wave) {
    if (wave.is_summed)
        return;
    const double begin = monotonic_seconds();
    activity::enter(Phase::reducing);
    wait_for_sums(wave);
    read(wave);
    auto& times = wave.figures.times;
    times[RankTime::wait] =
        times[RankTime::wait].value_or(0) + 1000 * (monotonic_seconds() - begin);
    wave.works.clear();
    wave.status_work.reset();
    wave.is_summed = true;
}

void WaveRing::wait_for_sums(Wave& wave) {
    const auto wait_for_works = [&] {
        for (const std::unique_ptr<Work>& work : wave.works)
            work->wait();
    };
    const auto take_sums = [&] { reducer_.take_sent(wave.gradients.flat, wave.sent); };
    if (parameters_.is_cut()) {
        wait_for_works();
        take_sums();
        norm_.held_squares(wave.gradients.flat, wave.status.squares());
        wave.status_work = reducer_.start_status(wave.status.slots());
        wave.status_work->wait_then(
            [&] { wave.status.send(norm_.from_squares(wave.status.squares())); });
        return;
    }
    wave.status_work->wait_then([&] {
        take_sums();
        wave.status.send(norm_.of(wave.gradients.flat));
    });
    wait_for_works();
}

void WaveRing::read(Wave& wave) {
    UpdateStatus::Reading reading = wave.status.read();
    HETSEQ_ASSERT(reading.verdict != Verdict::repeat);
    wave.verdict = reading.verdict;
    wave.figures.told.losses = std::move(reading.losses);
    wave.figures.told.gradient_norm = reading.gradient_norm / wave.figures.told.scale;
    double reduce_ms = wave.status_work->own_ms();
    for (const std::unique_ptr<Work>& work : wave.works)
        reduce_ms += work->own_ms();
    wave.figures.times[RankTime::reduce] = reduce_ms;
}

std::size_t WaveRing::saved() const {
    return std::min(waves_.size(), staleness_);
}

std::vector<GradientSet> WaveRing::sums() const {
    std::vector<GradientSet> sums;
    for (std::size_t i = 0; i < saved(); ++i)
        sums.push_back(waves_[i]->gradients);
    return sums;
}

std::vector<PendingUpdate> WaveRing::pending() const {
    std::vector<PendingUpdate> pending;
    for (std::size_t i = 0; i < saved(); ++i)
        pending.push_back(waves_[i]->figures.told);
    return pending;
}

}  // namespace hetseq
