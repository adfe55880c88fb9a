#include "hetseq/session/resumed_data.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"

namespace hetseq {

namespace {

bool may_have_other_data(const Options& options, const ResumePoint& point) {
    return !point.is_own && options.reset_position;
}

// Empty if nothing that both know differs.
std::string differing_data(const RunIdentity& own, const RunIdentity& saved) {
    if (saved.samples != own.samples || saved.corpus != own.corpus)
        return std::to_string(own.samples) + " samples (" + own.corpus + ") here, " +
               std::to_string(saved.samples) + " (" + saved.corpus + ") there";
    return own.data && saved.data ? difference(*own.data, *saved.data) : "";
}

}  // namespace

void check_same_data(const RunIdentity& own, const Options& options, const ResumePoint& point) {
    if (may_have_other_data(options, point))
        return;
    const std::string what = differing_data(own, point.state.run);
    if (!what.empty())
        throw BadConfig("--data is not what " + point.folder.string() + " was trained with",
                        what,
                        "give the same data, or start another run from it: --save-dir OTHER "
                        "--restore-file " +
                            point.folder.string() + " --reset-position");
}

std::string note_on_data(const RunIdentity& own, const Options& options, const ResumePoint& point) {
    const std::optional<CorpusIdentity>& saved = point.state.run.data;
    if (may_have_other_data(options, point) || !own.data)
        return "";
    if (!saved)
        return point.folder.string() +
               " was saved by an older version, which did not record its data: the number "
               "of samples and their shapes are the same; nothing else could be compared";
    const std::int64_t resized = resized_shards(*own.data, *saved);
    if (resized == 0)
        return "";
    return std::to_string(resized) + " of " + std::to_string(saved->shards.size()) +
           " shards have another size than when " + point.folder.string() +
           " was saved; the rows that were compared are the same, so they are taken for a copy";
}

void forget_other_validation(TrainingProgress& progress,
                             const RunIdentity& own,
                             const ResumePoint& point) {
    if (!own.valid_data || !point.state.run.valid_data)
        return;
    const std::string what = difference(*own.valid_data, *point.state.run.valid_data);
    if (what.empty())
        return;
    progress.last_valid.reset();
    progress.best_valid.reset();
    progress.best_update = progress.validations_since_best = 0;
    log::warn("--valid-data is not what " + point.folder.string() + " was validated with (" + what +
              "): the best model and --patience count from here");
}

}  // namespace hetseq
