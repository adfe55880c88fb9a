#include "hetseq/app/program.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/signal_inbox.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/host_name.hpp"
#include "hetseq/comm/mpi_environment.hpp"

#include "hetseq/version.hpp"

#include "hetseq/app/command_table.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/option_parser.hpp"
#include "hetseq/app/program_agreement.hpp"
#include "hetseq/app/standard_streams.hpp"

namespace hetseq {

namespace {

std::string usage() {
    std::string text = "hetseq " + std::string(version::number) +
                       ": data-parallel training on unlike GPUs, one rank a device.\n\n"
                       "  mpirun -np N hetseq train CONFIG.cfg [--OPTION VALUE ...]\n\nCommands:\n";
    std::vector<std::vector<std::string>> rows;
    for (const CommandEntry& command : command_table())
        rows.push_back({"  " + command.name, command.help});
    return text + format_table(rows) +
           "\nhetseq COMMAND --help tells more; hetseq --version prints the version.\n";
}

std::string command_help(const CommandEntry& command) {
    std::string text = "hetseq " + command.usage + "\n\n" + command.help + "\n";
    if (command.takes_options)
        text +=
            "\nOptions stand on the command line or, without the dashes, in CONFIG.cfg; the command line wins.\n" +
            options_help();
    return text;
}

const CommandEntry& find_command(const std::string& name) {
    std::vector<std::string> names;
    for (const CommandEntry& command : command_table()) {
        if (command.name == name)
            return command;
        names.push_back(command.name);
    }
    throw BadUsage("unknown command '" + name + "'", "", suggestion(name, names));
}

int run_serially(const CommandEntry& command,
                 const std::vector<std::string>& words,
                 const Parts& parts) {
    const HostComm world = HostComm::serial();
    return command.run({nullptr, world, world, parts, words});
}

int run_on_ranks(int argc,
                 char** argv,
                 const CommandEntry& command,
                 const std::vector<std::string>& words,
                 const Parts& parts) {
    const MpiEnvironment environment(argc, argv);
    const HostComm world = HostComm::world(environment);
    const HostComm meeting = world.duplicate();
    log::set_identity(world.rank(), world.size(), host_name());
    try {
        activity::enter(Phase::starting, 0);
        agree_on_program(world, program_text());
        return command.run({&environment, world, meeting, parts, words});
    } catch (const std::exception& error) {
        return end_ranks(meeting, error);
    }
}

int dispatch(int argc, char** argv, const Parts& parts) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty())
        throw BadUsage("no command was given", "", "hetseq --help lists them");
    if (words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
        std::fputs(usage().c_str(), stdout);
        return 0;
    }
    if (words.front() == "--version") {
        std::printf("hetseq %s (%s)\n", version::number, version::revision);
        return 0;
    }
    const CommandEntry& command = find_command(words.front());
    words.erase(words.begin());
    if (!command.takes_requests)
        signal_inbox::release();
    for (const std::string& word : words)
        if (word == "--help" || word == "-h") {
            std::fputs(command_help(command).c_str(), stdout);
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
    try {
        const int exit_code = dispatch(argc, argv, parts);
        check_standard_output();
        return exit_code;
    } catch (const std::exception& error) {
        print_error(error);
        return exit_code_of(error);
    }
}

}  // namespace hetseq
