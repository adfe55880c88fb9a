#include "hetseq/app/program.hpp"

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/exit_code.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/process/standard_streams.hpp"
#include "hetseq/util/process/terminal.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/command_help.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/meeting_limit.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"
#include "hetseq/tools/tool_table.hpp"
#include "hetseq/train/watch/watchdog.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/program_agreement.hpp"

namespace hetseq {

namespace {

int run_serially(const CommandEntry& command,
                 const std::vector<std::string>& words,
                 const Parts& parts) {
    const HostComm world = HostComm::serial();
    const CommandWords parsed =
        parse_command_words(command.description, words, option_table(parts));
    return command.run({nullptr, world, world, parts, nullptr, parsed});
}

// In a user's script, which has started MPI itself, ranks may come here at unlike times.
MeetingLimit::Options limit_of(const MpiEnvironment& environment) {
    MeetingLimit::Options options;
    if (!environment.started_here())
        options.seconds = 0;
    return options;
}

WatchdogOptions silence_alone() {
    return {.stall_timeout = MeetingLimit::seconds_of_environment(), .judge = Judge::silence};
}

int run_within(const MpiEnvironment& environment,
               const CommandEntry& command,
               const std::vector<std::string>& words,
               const Parts& parts) {
    MeetingLimit limit{"to begin", {}, limit_of(environment)};
    const HostComm world = HostComm::world(environment);
    const HostComm meeting = world.duplicate();
    log::set_identity(world.rank(), world.size(), host_name());
    std::optional<Watchdog> watchdog;
    try {
        activity::enter(Phase::starting, 0);
        agree_on_program(world, program_text());  // first: another version calls other collectives
        watchdog.emplace(environment, world, silence_alone());
        limit.met();
        const CommandWords parsed = agree_on(world, [&] {
            return parse_command_words(command.description, words, option_table(parts));
        });
        fault_point("command", 0);
        const int code = command.run({&environment, world, meeting, parts, &*watchdog, parsed});
        world.barrier();  // under the watchdog: some ranks may still be at work
        return code;
    } catch (const ReaderLeft&) {
        world.barrier();
        return reader_left_code;
    } catch (const std::exception& error) {
        return end_ranks(meeting, error);
    }
}

int run_on_ranks(int argc,
                 char** argv,
                 const CommandEntry& command,
                 const std::vector<std::string>& words,
                 const Parts& parts) {
    const MpiEnvironment environment(argc, argv);
    const int code = run_within(environment, command, words, parts);
    // The end of MPI ends HDF5, which would crash.
    if (code != 0 && environment.started_here() && hdf5_failed_to_close())
        MpiEnvironment::abort(code);
    return code;
}

// `hetseq bench step --help` shows the form that is named.
void print_help(const CommandEntry& command,
                const std::vector<std::string>& words,
                const Parts& parts) {
    const std::string form = words.empty() ? "" : words.front();
    std::fputs(command_help(command.description, form, option_table(parts)).c_str(), stdout);
}

// Answers requests for help and version. False: the words are for a command.
bool answer(const std::vector<std::string>& words, const Parts& parts) {
    if (is_help(words.front()) && words.size() > 1) {
        print_help(find_command(words[1]), {words.begin() + 2, words.end()}, parts);
        return true;
    }
    if (is_help(words.front())) {
        std::fputs(program_usage().c_str(), stdout);
        return true;
    }
    if (is_version(words.front()))
        std::puts(version_line().c_str());
    return is_version(words.front());
}

int dispatch(int argc, char** argv, const Parts& parts) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty())
        throw BadUsage("no command was given", "", "hetseq --help lists them");
    if (answer(words, parts))
        return 0;
    const CommandEntry& command = find_command(words.front());
    words.erase(words.begin());
    if (!command.takes_requests)
        signal_inbox::release();
    if (asks_for_help(words)) {
        print_help(command, words, parts);
        return 0;
    }
    const bool with_mpi =
        command.needs_mpi == NeedsMpi::always ||
        (command.needs_mpi == NeedsMpi::launched && MpiEnvironment::launched_as_rank());
    return with_mpi ? run_on_ranks(argc, argv, command, words, parts)
                    : run_serially(command, words, parts);
}

}  // namespace

int run_program(int argc, char** argv, const Parts& parts) {
    log::set_columns(columns_of_terminal());
    return run_to_exit_code([&] { return dispatch(argc, argv, parts); });
}

}  // namespace hetseq
