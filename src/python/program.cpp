#include "program.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <thread>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/crash_report.hpp"
#include "hetseq/util/process/exit_code.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/process/standard_streams.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

#include "python_parts.hpp"

namespace hetseq {

namespace {

/// Puts the handlers of the signals that the program catches back as they were.
class SignalHandlers {
public:
    SignalHandlers() {
        for (std::size_t i = 0; i < signals.size(); ++i)
            ::sigaction(signals[i], nullptr, &before_[i]);
    }
    ~SignalHandlers() {
        for (std::size_t i = 0; i < signals.size(); ++i)
            ::sigaction(signals[i], &before_[i], nullptr);
    }
    SignalHandlers(const SignalHandlers&) = delete;
    SignalHandlers& operator=(const SignalHandlers&) = delete;

private:
    static constexpr std::array<int, 7> signals{
        SIGUSR1, SIGUSR2, SIGXCPU, SIGTERM, SIGINT, SIGPIPE, SIGXFSZ};
    std::array<struct sigaction, signals.size()> before_{};
};

// MPI cannot start again once it has ended, so that it lives as long as the script.
std::unique_ptr<MpiEnvironment>& script_environment() {
    static std::unique_ptr<MpiEnvironment> environment;
    return environment;
}

// Before MPI runs, nobody knows whether the other ranks failed as well. Where rank 0 did, the
// launcher ends the others before they print the same.
void print_from_one_rank(const std::exception& error) {
    if (MpiEnvironment::launched_rank() > 0)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    print_error(error);
}

ProgramEnd run(const std::vector<std::string>& words, bool has_task, bool in_script) {
    log::take_last_error();
    std::vector<std::string> all{"hetseq"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : all)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    try {
        Parts parts = has_task ? python_task_parts() : builtin_parts();
        parts.is_called_by_script = in_script;
        const int code = run_program(static_cast<int>(all.size()), argv.data(), parts);
        return {code, code == 0 ? "" : log::take_last_error()};
    } catch (const std::exception& error) {  // the task could not even be described
        print_from_one_rank(error);
        return {exit_code_of(error), message_of(error)};
    }
}

}  // namespace

ProgramEnd run_as_program(const std::vector<std::string>& words, bool has_task) {
    signal_inbox::open();
    keep_standard_streams();
    install_crash_report();
    keep_freed_memory();
    keep_few_kernels();
    return run(words, has_task, false);
}

ProgramEnd run_in_script(const std::vector<std::string>& words, bool has_task) {
    const SignalHandlers handlers;
    signal_inbox::open();
    keep_freed_memory();
    keep_few_kernels();
    if (script_environment() == nullptr) {
        int argc = 0;
        char** argv = nullptr;
        script_environment() = std::make_unique<MpiEnvironment>(argc, argv, Meeting::unlimited);
    }
    return run(words, has_task, true);
}

void end_mpi() {
    script_environment().reset();
}

void abort_mpi(std::int64_t code) {
    if (script_environment() != nullptr)
        MpiEnvironment::abort(static_cast<int>(code));
}

std::int64_t launched_rank() {
    return MpiEnvironment::launched_rank();
}

}  // namespace hetseq
