#include "hetseq/comm/launcher.hpp"

#include <csignal>
#include <cstdlib>

#include <sys/types.h>
#include <unistd.h>

namespace hetseq {

namespace {

// Open MPI 4.1.4 crashes at a SIGTERM once it has begun to abort: no gentler signal is left.
constexpr unsigned patience_s = 6;
constexpr int most_descriptors = 65536;

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

void end_launcher_if_stuck() noexcept {
    const pid_t launcher = ::getppid();
    if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr || launcher <= 1)
        return;
    if (::fork() == 0)
        end_process(launcher);
}

}  // namespace hetseq
