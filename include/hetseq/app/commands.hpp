#pragma once

#include <string>
#include <vector>

#include "hetseq/task/parts.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;

/// What a command gets: its words, and the job it runs in.
struct CommandContext {
    const MpiEnvironment* environment = nullptr;  // null: not among ranks, and `world` is serial
    const HostComm& world;
    const HostComm& meeting;  // for `end_ranks` alone
    const Parts& parts;
    const std::vector<std::string>& words;  // after the command's name
};

/// Each returns an exit code, the same on all ranks.
int train_command(const CommandContext& context);
int evaluate_command(const CommandContext& context);
int check_command(const CommandContext& context);
int checkpoint_command(const CommandContext& context);
int prepare_command(const CommandContext& context);
int bench_command(const CommandContext& context);
int plan_command(const CommandContext& context);
int report_command(const CommandContext& context);
int info_command(const CommandContext& context);
int document_command(const CommandContext& context);

}  // namespace hetseq
