#pragma once

#include <optional>

#include "hetseq/state/layout_record.hpp"
#include "hetseq/session/pipeline/layout_choice.hpp"

namespace hetseq {

struct RunIdentity;
struct RunSettings;

/// From now on the options of `settings` ask for these pipelines, or for replicas. They stand in
/// config.cfg and in checkpoints, so that the run can be repeated with the same bits. Replicas
/// whose memory nobody measures again (--balance equal or declared, or one rank) have the
/// micro-batches by which the layout fits, where samples have one shape.
void record_layout(const LayoutChoice& choice, RunSettings& settings);

/// For checkpoints: `choice`, whose ranks are those of `settings`, and what was asked for. None:
/// --virtual-workers and --stage-units left nothing open.
std::optional<LayoutRecord> layout_record(const RunSettings& settings, const LayoutChoice& choice);

/// The choice that `saved`, an earlier part of the run, has recorded, if `settings` ask for the
/// same as it did, of ranks that have the devices and limits that they had. None: it is to be made.
std::optional<LayoutChoice> recorded_layout(const RunSettings& settings, const RunIdentity& saved);

}  // namespace hetseq
