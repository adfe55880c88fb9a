#pragma once

#include <string>

#include "hetseq/session/resume.hpp"

namespace hetseq {

/// Throws BadConfig where the training data of `own` are not those of `point`, unless
/// --reset-position allows others.
void check_same_data(const RunIdentity& own, const Options& options, const ResumePoint& point);

/// What is worth saying about data that passed `check_same_data`; empty where nothing.
std::string note_on_data(const RunIdentity& own, const Options& options, const ResumePoint& point);

/// Where the validation data of `own` are not those of `point`, its losses cannot be compared with
/// those to come: best model and patience begin anew, and a warning says so.
void forget_other_validation(TrainingProgress& progress,
                             const RunIdentity& own,
                             const ResumePoint& point);

}  // namespace hetseq
