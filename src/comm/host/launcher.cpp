#include "hetseq/comm/host/launcher.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/types.h>
#include <unistd.h>

namespace hetseq {

namespace {

// Open MPI 4.1.4 crashes at a SIGTERM once it has begun to abort: no gentler signal is left.
constexpr unsigned patience_s = 6;
constexpr int most_descriptors = 65536;

// A shell is not a launcher, and neither is a scheduler's daemon: srun itself ends a job whose host
// is gone.
bool is_launcher(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/comm");
    std::string name;
    std::getline(file, name);
    const auto prefixes = {"mpirun", "mpiexec", "orte", "prte"};
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) {
        return name.rfind(prefix, 0) == 0;
    });
}

pid_t parent_of(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/status");
    for (std::string key; file >> key; file.ignore(256, '\n'))
        if (pid_t parent = 0; key == "PPid:" && file >> parent)
            return parent;
    return 0;
}

// A script may stand between the launcher and this process. 0: there is none.
pid_t find_launcher() {
    for (pid_t process = ::getppid(); process > 1; process = parent_of(process))
        if (is_launcher(process))
            return process;
    return 0;
}

// What a descriptor of a process is: "/dev/pts/3", "pipe:[4711]". Empty where it cannot be told.
std::string target_of(const std::filesystem::path& descriptor) {
    std::error_code unknown;
    return std::filesystem::read_symlink(descriptor, unknown).string();
}

bool is_open_in(pid_t process, const std::string& target) {
    std::error_code unknown;
    const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/fd";
    for (std::filesystem::directory_iterator entry(folder, unknown), end; entry != end;
         entry.increment(unknown))
        if (target_of(entry->path()) == target)
            return true;
    return false;
}

// Runs in a forked process without its other threads, so only async-signal-safe calls are allowed.
[[noreturn]] void end_process(pid_t launcher) noexcept {
    ::setsid();  // the launcher kills this rank's process group
    // It also waits until a rank's output and its connections are closed.
    for (int descriptor = 0; descriptor < most_descriptors; ++descriptor)
        ::close(descriptor);
    ::sleep(patience_s);
    ::kill(launcher, SIGKILL);
    ::_exit(0);
}

}  // namespace

void end_launcher_if_stuck() {
    const pid_t launcher = ::getppid();
    if (is_launcher(launcher) && ::fork() == 0)
        end_process(launcher);
}

bool was_started_by_mpirun() {
    return find_launcher() != 0;
}

std::string terminal_of_launcher() {
    const pid_t launcher = find_launcher();
    const std::string own = target_of("/proc/self/fd/2");
    if (launcher == 0 || own.rfind("pipe:", 0) != 0 || !is_open_in(launcher, own))
        return "";
    const std::string shown = target_of("/proc/" + std::to_string(launcher) + "/fd/2");
    const bool is_terminal = shown.rfind("/dev/pts/", 0) == 0 || shown.rfind("/dev/tty", 0) == 0;
    return is_terminal ? shown : "";
}

}  // namespace hetseq
