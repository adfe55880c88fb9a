#pragma once

#include <string>

namespace hetseq {

/// How many threads may call MPI at once.
enum class ThreadSupport { single, funneled, serialized, multiple };

/// "MPI_THREAD_MULTIPLE" and so on.
const char* to_string(ThreadSupport support) noexcept;

/// MPI's lifetime: made first and destroyed last in `main`. Asks for MPI_THREAD_MULTIPLE and
/// accepts less (`thread_support()` says what was given). While an exception unwinds it does not
/// finalize, which would hang: `main` catches and calls `abort`. After `leave_thread_behind` it
/// aborts.
/// Where MPI runs already (a test's main started it) it joins in and leaves finalizing to the
/// starter.
class MpiEnvironment {
public:
    /// Throws CommError when the launcher started several processes that MPI does not connect.
    MpiEnvironment(int& argc, char**& argv);
    ~MpiEnvironment();
    MpiEnvironment(const MpiEnvironment&) = delete;
    MpiEnvironment& operator=(const MpiEnvironment&) = delete;

    ThreadSupport thread_support() const noexcept { return thread_support_; }

    /// Says that a thread of this process stays inside MPI for good: MPI cannot end in order any
    /// more, only by `abort`.
    static void leave_thread_behind() noexcept;
    static bool has_left_thread_behind() noexcept;

    /// Ends all ranks of the job with `exit_code`.
    [[noreturn]] static void abort(int exit_code) noexcept;

    /// True when a launcher (mpirun, srun) started this process as a rank, by its environment
    /// alone. To be asked before MPI starts, which gives a lone process the same variables.
    static bool launched_as_rank();

    /// The library this process runs with, e.g. "Open MPI v4.1.4". Needs no MPI_Init.
    static std::string library_version();

private:
    ThreadSupport thread_support_ = ThreadSupport::single;
    bool started_here_ = false;
};

}  // namespace hetseq
