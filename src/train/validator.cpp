#include "hetseq/train/validator.hpp"

#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/train/checkpoint/whole_model.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/validation/evaluator.hpp"

namespace hetseq {

bool Validator::is_due_after(std::int64_t update, std::int64_t position) const {
    if (parts_.evaluator == nullptr || update >= options_.updates)
        return false;
    const bool is_due = options_.interval > 0 ? (update + 1) % options_.interval == 0
                                              : parts_.plan.ends_epoch(position);
    return is_due || update + 1 == options_.updates;
}

bool Validator::run(std::int64_t epoch, const MicroBatchCap& most, TrainingProgress& progress) {
    const Evaluation evaluation = parts_.evaluator->run(most);
    const bool best = is_better(parts_.world, evaluation, progress.best_valid, options_.best_by);
    parts_.recorder.valid(progress.updates, epoch, evaluation, best);
    if (const std::string why = why_never_best(evaluation, options_.best_by);
        parts_.world.rank() == 0 && !why.empty())
        log::warn(why);
    progress.last_valid = evaluation;
    progress.last_valid_update = progress.updates;
    if (best)
        progress.validations_since_best = 0;
    else if (evaluation.has_weight(options_.best_by.name))
        ++progress.validations_since_best;
    if (best) {
        progress.best_valid = evaluation;
        progress.best_update = progress.updates;
        activity::enter(Phase::saving);
        if (parts_.folder != nullptr)
            keep_best_model();
    }
    return options_.patience > 0 && progress.validations_since_best >= options_.patience;
}

void Validator::keep_best_model() {
    const auto require_lease = [&] { parts_.folder->require_lease(); };
    agree_on(parts_.world, require_lease);
    if (parts_.held_model != nullptr)
        save_whole_model(
            parts_.world, *parts_.held_model, parts_.folder->best_model(), require_lease);
    else if (parts_.world.rank() == 0)
        save_model(parts_.folder->best_model(), parts_.model, require_lease);
}

}  // namespace hetseq
