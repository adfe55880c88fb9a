#pragma once

#include <string>

#include "hetseq/session/resume.hpp"

namespace hetseq {

/// Throws BadConfig if the training data of `own` differ from those of `point`, unless
/// --reset-position allows other data.
void check_same_data(const RunIdentity& own, const Options& options, const ResumePoint& point);

/// A note on data that passed `check_same_data`; empty if there is nothing to say.
std::string note_on_data(const RunIdentity& own, const Options& options, const ResumePoint& point);

/// If the validation data of `own` differ from those of `point`, earlier losses cannot be compared
/// with later ones. Best model and patience then begin anew, and a warning says so.
void forget_other_validation(TrainingProgress& progress,
                             const RunIdentity& own,
                             const ResumePoint& point);

}  // namespace hetseq
