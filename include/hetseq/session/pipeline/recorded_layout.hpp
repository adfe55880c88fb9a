#pragma once

#include <optional>

#include "hetseq/session/pipeline/pipeline_layout.hpp"

namespace hetseq {

struct RunIdentity;
struct RunSettings;

/// From now on the options of `settings` ask for `layout`: they stand in config.cfg and in
/// checkpoints, so that the run can be repeated with the same bits.
void record_layout(const PipelineLayout& layout, RunSettings& settings);

/// The layout that `saved`, an earlier part of the run, has recorded: where --stage-units leaves
/// the cut open, and the ranks have the devices and limits that they had. None: it is to be
/// planned.
std::optional<PipelineLayout> recorded_layout(const RunSettings& settings,
                                              const RunIdentity& saved);

}  // namespace hetseq
