// What users call. It answers itself what needs neither tensors nor MPI, since loading LibTorch
// takes a quarter of a second, and becomes the whole program (libexec/hetseq/hetseq-program) for
// all else: the same process, so that launchers, signals and waiting parents notice nothing.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/exit_code.hpp"
#include "hetseq/util/process/standard_streams.hpp"
#include "hetseq/util/process/terminal.hpp"
#include "hetseq/command_line/command_help.hpp"
#include "hetseq/command_line/python_task.hpp"
#include "hetseq/tools/checkpoint_command.hpp"
#include "hetseq/tools/tool_table.hpp"

namespace {

using hetseq::CommandDescription;
using Words = std::vector<std::string>;

// The whole program lies in PREFIX/libexec/hetseq, where this one is PREFIX/bin/hetseq, or beside
// it.
int become_whole_program(char** argv) {
    namespace fs = std::filesystem;
    std::error_code unknown;
    const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
    const fs::path name = "hetseq-program";
    const fs::path usual = folder.parent_path() / "libexec" / "hetseq" / name;
    ::execv(usual.c_str(), argv);
    const int error = errno;
    ::execv((folder / name).c_str(), argv);
    throw hetseq::IoError("cannot start " + usual.string() + ", which this command needs",
                          std::strerror(error),
                          "install bin/ and libexec/ of hetseq together");
}

// A reader that leaves, and a file that may not grow, are noticed where they are written to.
void answer_here() {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    hetseq::log::set_columns(hetseq::columns_of_terminal());
}

int answer(const CommandDescription& command,
           const Words& words,
           int (*run)(const hetseq::CommandWords&)) {
    answer_here();
    if (hetseq::asks_for_help(words)) {
        const std::string form = words.front();
        std::fputs(hetseq::command_help(command, form, {}).c_str(), stdout);
        return 0;
    }
    return run(hetseq::parse_command_words(command, words));
}

int dispatch(int argc, char** argv) {
    Words words(argv + std::min(argc, 1), argv + argc);
    if (hetseq::names_python_task(words))
        return hetseq::continue_in_python(words);
    if (words.size() == 1 && hetseq::is_version(words.front())) {
        answer_here();
        std::puts(hetseq::version_line().c_str());
        return 0;
    }
    if (words.size() == 1 && hetseq::is_help(words.front())) {
        answer_here();
        std::fputs(hetseq::program_usage().c_str(), stdout);
        return 0;
    }
    if (words.size() > 1 && hetseq::is_help(words.front()))
        words = {words[1], "--help"};
    if (words.empty())
        return become_whole_program(argv);
    const std::string command = words.front();
    const Words rest(words.begin() + 1, words.end());
    if (const hetseq::Tool* const tool = hetseq::find_tool(command))
        return answer(tool->description, rest, tool->run);
    if (command == "checkpoint" && !rest.empty() && hetseq::needs_no_tensors(rest.front()))
        return answer(hetseq::checkpoint_description(), rest, hetseq::look_at_checkpoints);
    return become_whole_program(argv);
}

}  // namespace

int main(int argc, char** argv) {
    hetseq::keep_standard_streams();
    return hetseq::run_to_exit_code([&] { return dispatch(argc, argv); });
}
