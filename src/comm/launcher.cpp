#include "hetseq/comm/launcher.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include <sys/types.h>
#include <unistd.h>

namespace hetseq {

namespace {

// Open MPI 4.1.4 crashes at a SIGTERM once it has begun to abort: no gentler signal is left.
constexpr unsigned patience_s = 6;
constexpr int most_descriptors = 65536;

// Not a shell, and not a scheduler's daemon: srun ends a job whose host is gone by itself.
bool is_launcher(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/comm");
    std::string name;
    std::getline(file, name);
    const auto prefixes = {"mpirun", "mpiexec", "orte", "prte"};
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) {
        return name.rfind(prefix, 0) == 0;
    });
}

// In a process of its own, alone of its threads: async-signal-safe calls only.
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

}  // namespace hetseq
