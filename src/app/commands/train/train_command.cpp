#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/watch/watchdog.hpp"
#include "hetseq/session/options/idle_options.hpp"
#include "hetseq/session/options/merged_values.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/process.hpp"

#include "left_out_rank.hpp"
#include "mpi_leftovers.hpp"
#include "training_attempt.hpp"

namespace hetseq {

namespace {

int train_with(const CommandContext& context, Crew crew, double start_seconds);

// Trains on these ranks alone; the others wait for their end, and have the same exit code. From
// here on the log numbers the first ones from 0, and the others after them.
int train_without_the_others(const CommandContext& context,
                             SmallerCrew smaller,
                             double start_seconds) {
    const HostComm& world = context.world;
    const std::vector<int>& ranks = smaller.ranks;
    const bool works = std::binary_search(ranks.begin(), ranks.end(), world.rank());
    HostComm own = world.split(works ? 1 : 0);
    own.become_job();
    const HostComm meeting = own.duplicate();
    log::set_identity(
        own.rank() + (works ? 0 : static_cast<int>(ranks.size())), world.size(), host_name());
    const std::string save_dir = smaller.crew.options.options().save_dir;
    const double stall_timeout = smaller.crew.options.options().stall_timeout;
    double code = 0;
    if (works) {
        const int failure = run_or_end(meeting, [&] {
            const Watchdog watchdog(*context.environment, own, {.stall_timeout = stall_timeout});
            const CommandContext context_of_own{
                context.environment, own, meeting, context.parts, nullptr, context.words};
            code = train_with(context_of_own, std::move(smaller.crew), start_seconds);
        });
        code = failure != 0 ? failure : code;
    }
    HostRequest end = world.start_all_reduce({&code, 1}, ReduceOp::max);
    if (!works)
        wait_for_the_others(end, save_dir);
    end.wait();
    return static_cast<int>(code);
}

int train_with(const CommandContext& context, Crew crew, double start_seconds) {
    Attempt attempt = try_to_train(context, std::move(crew), start_seconds);
    return attempt.smaller
               ? train_without_the_others(context, std::move(*attempt.smaller), start_seconds)
               : attempt.code;
}

}  // namespace

int train_command(const CommandContext& context) {
    const double start_seconds = process_start_seconds();
    const HostComm& world = context.world;
    const GivenOptions given =
        agree_on(world, [&] { return given_options(context.words, option_table(context.parts)); });
    SettledOptions settled = settle_options(world, given, context.parts);
    for (const std::string& line : idle_options(settled.options()))
        log::warn(line);
    if (context.parts.is_called_by_script && settled.options().drop_below > 0)
        log::warn(
            "--drop-below has no effect (hetseq.train returns the model on each rank): train the "
            "task by 'hetseq train FILE.py:TASK'");
    clear_mpi_leftovers();
    signal_inbox::choose(settled.options().stop_signals, settled.options().checkpoint_signals);
    const double stall_timeout = settled.options().stall_timeout;
    context.watchdog->change(stall_timeout, Judge::work_and_silence);
    const int code = train_with(context, {.options = std::move(settled)}, start_seconds);
    context.watchdog->change(stall_timeout, Judge::silence);
    return code;
}

}  // namespace hetseq
