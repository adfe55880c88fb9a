#pragma once

#include <string>

namespace hetseq {

/// How many threads may call MPI at once.
enum class ThreadSupport { single, funneled, serialized, multiple };

/// "MPI_THREAD_MULTIPLE" and so on.
const char* to_string(ThreadSupport support) noexcept;

/// Whether ranks wait for others at MPI's start and end without a limit (`MeetingLimit`). Those of
/// a user's script may come there at unlike times.
enum class Meeting { limited, unlimited };

/// MPI's lifetime: made first and destroyed last in `main`. Asks for MPI_THREAD_MULTIPLE and
/// accepts less (`thread_support()` says what was given). While an exception unwinds it does not
/// finalize, which would hang: `main` catches and calls `abort`. After `leave_thread_behind` it
/// aborts. If MPI already runs (a test's `main` started it), it uses that and does not finalize it.
class MpiEnvironment {
public:
    /// Throws CommError when the launcher started several processes that MPI does not connect.
    MpiEnvironment(int& argc, char**& argv, Meeting meeting = Meeting::limited);
    ~MpiEnvironment();
    MpiEnvironment(const MpiEnvironment&) = delete;
    MpiEnvironment& operator=(const MpiEnvironment&) = delete;

    ThreadSupport thread_support() const noexcept { return thread_support_; }
    /// Whether this object started MPI, and will end it.
    bool started_here() const noexcept { return started_here_; }

    /// Records that a thread of this process stays inside MPI forever. MPI can then only end by
    /// `abort`.
    static void leave_thread_behind() noexcept;
    static bool has_left_thread_behind() noexcept;

    /// Ends all ranks of the job with `exit_code`.
    [[noreturn]] static void abort(int exit_code) noexcept;

    /// True if a launcher (mpirun, srun) started this process as a rank; only the environment is
    /// looked at. Call it before MPI starts, since MPI gives a lone process the same variables.
    static bool launched_as_rank();
    /// The rank that a launcher's environment gives this process; 0 without one.
    static int launched_rank();

    /// The library this process runs with, e.g. "Open MPI v4.1.4". Needs no MPI_Init.
    static std::string library_version();

private:
    ThreadSupport thread_support_ = ThreadSupport::single;
    bool started_here_ = false;
    Meeting meeting_;
};

}  // namespace hetseq
