// Updates of a trainer whose parameters may be late (docs/virtual-workers.md, "Staleness").
#include <algorithm>
#include <utility>

#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/trainer.hpp"

namespace hetseq {

// Computes as many updates as may be ahead, and applies the next one. Returns false if the run was
// asked to stop before: what is computed then stays for the checkpoint. Where more is pending than
// may be, which a checkpoint left, that is applied first, and nobody is asked.
bool Trainer::update_late() {
    const std::int64_t first = wave_;
    while (wave_ < run_.updates && wave_ <= update_ + options_.staleness) {
        if (!begin_wave())
            return false;
        compute_wave();
        request_ahead();
        load_next();
        ++wave_;
    }
    if (wave_ >= run_.updates && !has_surplus() && has_made_its_updates()) {
        report_.stop = StopReason::stop_after;
        return false;
    }
    computed_ = wave_ - first;
    update_parameters(take_wave());
    waves_.release();
    done_share_ = nullptr;
    if (wave_ > first)
        note_own_time(done_.times[RankTime::wait].value_or(0));
    return true;
}

// Its sums are under way afterwards.
void Trainer::compute_wave() {
    const ForwardContext context{Mode::train, run_.seed, wave_};
    UpdateFigures figures = figures_of(*share_);
    waves_.compute(*std::move(share_), agreement_.weights(), context, std::move(figures));
}

Verdict Trainer::take_wave() {
    gather_wait_ms_ = wait_for_values();
    lr_ = parts_.optimizer.rate(
        parts_.schedule(update_ - report_.schedule_origin, report_.schedule_epochs));
    const Wave& wave = waves_.take();
    done_ = wave.figures;
    done_share_ = wave.share ? &*wave.share : nullptr;
    if (wave.verdict == Verdict::apply)
        step_.loss_scale().applied();
    return wave.verdict;
}

}  // namespace hetseq
