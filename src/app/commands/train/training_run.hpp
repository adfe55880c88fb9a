#pragma once

#include "dry_run_report.hpp"

namespace hetseq {

class HostComm;
class Replica;
class RunFolder;
class Training;
struct CommandContext;
struct LayoutChoice;

/// What the log says before the first update.
void say_start(const CommandContext& context,
               const RunSettings& settings,
               Replica& replica,
               Training& training,
               const LayoutChoice& choice);

/// Collective. Trains to the end of the run, or to where it is stopped, and leaves its results in
/// `folder`, which may be null. Everything that needs the training's objects is in here, the end
/// after a failure too. Returns the exit code.
int run_training(const CommandContext& context,
                 const RunSettings& settings,
                 Replica& replica,
                 Training& training,
                 const RunFolder* folder,
                 const LayoutChoice& choice,
                 double start_seconds);

/// Collective. Tries some updates, and says what the run would do. Returns the exit code.
int try_out(const CommandContext& context,
            const RunSettings& settings,
            const Replica& replica,
            Training& training,
            const LayoutChoice& choice,
            DryRunReport plan);

int say_dry_run(const HostComm& world, const RunSettings& settings, const DryRunReport& report);

}  // namespace hetseq
