#include "hetseq/train/record/skipped_updates.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/update_step.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t skips_that_may_be_chance = 3;

// The first parameter that is held and holds values that are not finite; empty: there is none.
std::string not_finite(const Model& model) {
    for (const NamedTensor& parameter : model.named_parameters())
        if (model.is_held(parameter.name) && !at::isfinite(parameter.tensor).all().item<bool>())
            return parameter.name;
    return "";
}

std::string first_few(const std::vector<std::int64_t>& samples) {
    constexpr std::size_t shown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(shown, samples.size()); ++i)
        text += (i > 0 ? ", " : "") + std::to_string(samples[i]);
    if (samples.size() > shown)
        text += " and " + std::to_string(samples.size() - shown) + " more";
    return text;
}

}  // namespace

void SkippedUpdates::skip(Verdict verdict,
                          const LoadedShare* share,
                          const ForwardContext& context,
                          TrainingProgress& progress) const {
    ++progress.skipped;
    ++progress.skips_in_a_row;
    recorder_.event(context.update + 1, "skipped, its loss or gradient is not finite");
    if (progress.skips_in_a_row == std::min(most_, skips_that_may_be_chance))
        require_finite_parameters();
    if (share != nullptr)
        name_samples(verdict, *share, context);
    if (progress.skips_in_a_row >= most_)
        throw BadData(std::to_string(progress.skips_in_a_row) +
                          " updates in a row had a loss or gradient that is not finite",
                      "--max-skips",
                      "lower --lr, or set --clip-norm");
}

void SkippedUpdates::skip_overflow(std::int64_t update,
                                   double new_scale,
                                   TrainingProgress& progress) const {
    ++progress.skipped;
    recorder_.event(update + 1,
                    "skipped, a gradient in fp16 was too large, and the loss scale is " +
                        std::to_string(static_cast<std::int64_t>(new_scale)) + " now");
}

// Otherwise no gradient is finite, however many updates are skipped. Frozen ones count too. A stage
// looks at its own. One that the model does not use may hold anything, and does no harm.
void SkippedUpdates::require_finite_parameters() const {
    agree_on(world_, [&] {
        if (const std::string name = not_finite(pass_.model()); !name.empty())
            throw BadData("no update can be applied any more",
                          "the parameter " + name + " holds values that are not finite",
                          "lower --lr, or look at what else writes parameters, as a task's "
                          "after_update or optimizer; go on from a checkpoint before that");
    });
}

void SkippedUpdates::name_samples(Verdict verdict,
                                  const LoadedShare& share,
                                  const ForwardContext& context) const {
    const bool is_loss = verdict == Verdict::skip_loss;
    const auto samples = is_loss ? non_finite_samples(pass_, share, context)
                                 : step_.non_finite_gradient_samples(share, context);
    if (!samples.empty())
        log::warn_here("update " + std::to_string(context.update + 1) + ": the " +
                       (is_loss ? "loss" : "gradient") +
                       " is not finite in the micro-batch with samples " + first_few(samples));
}

// That is no failure: a batch may have no target. Where all have none, users should hear of it.
void SkippedUpdates::tell_of_no_weight(std::int64_t update, std::span<const double> weights) {
    const auto is_zero = [](double weight) { return weight == 0; };
    if (told_of_no_weight_ || !std::all_of(weights.begin(), weights.end(), is_zero))
        return;
    told_of_no_weight_ = true;
    recorder_.event(update + 1,
                    "no sample of its batch has a weight in any loss, so it has no gradient and "
                    "counts in no mean of losses; if that is not meant, look at the data's "
                    "targets and weights (said once)");
}

// Each stage of a pipeline looks at its own parameters.
void SkippedUpdates::tell_of_parameters(std::int64_t update) const {
    const std::vector<std::string> by_rank = world_.gather(not_finite(pass_.model()), 0);
    const auto name = std::find_if(
        by_rank.begin(), by_rank.end(), [](const std::string& found) { return !found.empty(); });
    if (name != by_rank.end())
        recorder_.event(update,
                        "the parameter " + *name +
                            " of the model that is kept holds values that are not finite");
}

}  // namespace hetseq
