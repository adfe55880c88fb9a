#include "hetseq/util/process/launcher.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/types.h>
#include <unistd.h>

namespace hetseq {

namespace {

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

// The value in /proc/PROCESS/status behind `key`, "T (stopped)"; empty where there is none.
std::string status_of(const std::string& process, const std::string& key) {
    std::ifstream file("/proc/" + process + "/status");
    for (std::string line; std::getline(file, line);)
        if (line.rfind(key + ":\t", 0) == 0)
            return line.substr(key.size() + 2);
    return "";
}

// The rank that a launcher's environment gives a process; -1 where it gives none.
int rank_of_process(const std::string& process) {
    std::ifstream file("/proc/" + process + "/environ");
    for (std::string entry; std::getline(file, entry, '\0');)
        for (const std::string name : {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "SLURM_PROCID="})
            if (entry.rfind(name, 0) == 0)
                return std::atoi(entry.c_str() + name.size());
    return -1;
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
// Open MPI 4.1.4 crashes at a SIGTERM once it has begun to abort: no gentler signal is left.
[[noreturn]] void end_process(pid_t launcher, unsigned patience_s) noexcept {
    ::setsid();  // the launcher kills this rank's process group
    // It also waits until a rank's output and its connections are closed.
    for (int descriptor = 0; descriptor < most_descriptors; ++descriptor)
        ::close(descriptor);
    ::sleep(patience_s);
    ::kill(launcher, SIGKILL);
    ::_exit(0);
}

}  // namespace

void end_launcher_if_stuck(unsigned patience_s) {
    const pid_t launcher = ::getppid();
    if (is_launcher(launcher) && ::fork() == 0)
        end_process(launcher, patience_s);
}

bool was_started_by_mpirun() {
    return find_launcher() != 0;
}

std::vector<StoppedRank> stopped_ranks_here() {
    std::vector<StoppedRank> stopped;
    std::error_code unknown;
    const std::string parent = std::to_string(::getppid());
    for (std::filesystem::directory_iterator entry("/proc", unknown), end; entry != end;
         entry.increment(unknown)) {
        const std::string process = entry->path().filename().string();
        if (status_of(process, "State").rfind("T (stopped)", 0) != 0 ||
            status_of(process, "PPid") != parent)
            continue;
        if (const int rank = rank_of_process(process); rank >= 0)
            stopped.push_back({rank, std::atoi(process.c_str())});
    }
    return stopped;
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
