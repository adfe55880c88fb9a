#pragma once

#include "hetseq/command_line/command_words.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;
class Watchdog;

/// A command's words, and the job that it runs in.
struct CommandContext {
    const MpiEnvironment* environment = nullptr;  // null: not among ranks, and `world` is serial
    const HostComm& world;
    const HostComm& meeting;  // for `end_ranks` alone
    const Parts& parts;
    Watchdog* watchdog = nullptr;  // of `world`; null where that is serial
    const CommandWords& words;     // the same on all ranks but for options that may differ
};

/// Each returns an exit code, the same on all ranks.
int train_command(const CommandContext& context);
int evaluate_command(const CommandContext& context);
int predict_command(const CommandContext& context);
int translate_command(const CommandContext& context);
int check_command(const CommandContext& context);
int checkpoint_command(const CommandContext& context);
int prepare_command(const CommandContext& context);
int bench_command(const CommandContext& context);
int plan_command(const CommandContext& context);
int info_command(const CommandContext& context);
int document_command(const CommandContext& context);

}  // namespace hetseq
