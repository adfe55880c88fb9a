#include "hetseq/comm/mpi/mpi_environment.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include <mpi.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/meeting_limit.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "comm/roll_call.hpp"

namespace hetseq {

namespace {

ThreadSupport from_mpi(int level) {
    switch (level) {
        case MPI_THREAD_MULTIPLE:
            return ThreadSupport::multiple;
        case MPI_THREAD_SERIALIZED:
            return ThreadSupport::serialized;
        case MPI_THREAD_FUNNELED:
            return ThreadSupport::funneled;
        default:
            return ThreadSupport::single;
    }
}

// Process-wide, like threads and MPI.
std::atomic<bool> thread_left_behind{false};

int integer_variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::atoi(value) : 0;
}

bool started_by_mpirun() {
    return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

// With a plugin that this MPI cannot use (pmi2, none), srun starts n processes. Each of them would
// believe to be alone, and all would write the same files.
void check_launcher() {
    int size = 0;
    MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int started = integer_variable("SLURM_STEP_NUM_TASKS");
    if (size == 1 && started > 1 && !started_by_mpirun())
        throw CommError(
            "srun started " + std::to_string(started) + " processes, and MPI connects none of them",
            "this MPI has no support for srun's default plugin",
            "start with srun --mpi=pmix, or with mpirun");
}

// Open MPI 5's UCX component prints an error for each window that it does not take. hetseq's
// windows are shared memory, which is another component's work.
void silence_ucx_windows() {
    constexpr int keep_the_users = 0;
    setenv("OMPI_MCA_osc", "^ucx", keep_the_users);
}

bool mpi_runs() {
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized != 0 && finalized == 0;
}

MeetingLimit::Options limit_of(Meeting meeting) {
    MeetingLimit::Options options;
    if (meeting == Meeting::unlimited)
        options.seconds = 0;
    return options;
}

// MPI_Init and MPI_Finalize wait for all ranks at full CPU use, and for ever for one that stands
// still. So ranks meet behind the one and before the other, sleeping, and a limit watches it all.
int initialise(int& argc, char**& argv, Meeting meeting) {
    fault_point("launched", 0);
    int provided = MPI_THREAD_SINGLE;
    MeetingLimit limit{"in MPI_Init", {}, limit_of(meeting)};
    MPI_TRY(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    limit.met();
    RollCall roll_call{MPI_COMM_WORLD};
    const MeetingLimit meeting_limit{
        "to meet at the start", [&] { return roll_call.missing(); }, limit_of(meeting)};
    fault_point("meeting", 0);
    roll_call.meet();
    return provided;
}

void finalise(Meeting meeting) {
    RollCall roll_call{MPI_COMM_WORLD};
    MeetingLimit limit{
        "to meet at the end", [&] { return roll_call.missing(); }, limit_of(meeting)};
    fault_point("leaving", 0);
    roll_call.meet();
    limit.met();
    const MeetingLimit last_limit{"in MPI_Finalize", {}, limit_of(meeting)};
    MPI_TRY(MPI_Finalize());
}

// MPI_Abort waits for the launcher's answer, but the link to the launcher may be cut. A launcher
// that can be reached ends the other ranks when one has gone.
void end_this_process_soon(int exit_code) noexcept {
    try {
        std::thread([exit_code] {
            std::this_thread::sleep_for(std::chrono::seconds(5));
            std::_Exit(exit_code);
        }).detach();
    } catch (const std::exception&) {
        // no thread is left to be had: MPI_Abort alone
    }
}

}  // namespace

const char* to_string(ThreadSupport support) noexcept {
    switch (support) {
        case ThreadSupport::multiple:
            return "MPI_THREAD_MULTIPLE";
        case ThreadSupport::serialized:
            return "MPI_THREAD_SERIALIZED";
        case ThreadSupport::funneled:
            return "MPI_THREAD_FUNNELED";
        case ThreadSupport::single:
            break;
    }
    return "MPI_THREAD_SINGLE";
}

MpiEnvironment::MpiEnvironment(int& argc, char**& argv, Meeting meeting)
    : started_here_{!mpi_runs()}, meeting_{meeting} {
    int provided = MPI_THREAD_SINGLE;
    if (started_here_) {
        silence_ucx_windows();
        provided = initialise(argc, argv, meeting);
    } else {
        MPI_TRY(MPI_Query_thread(&provided));
    }
    thread_support_ = from_mpi(provided);
    MPI_TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    check_launcher();
}

MpiEnvironment::~MpiEnvironment() {
    if (!started_here_ || !mpi_runs() || std::uncaught_exceptions() > 0)
        return;
    if (has_left_thread_behind())
        abort(static_cast<int>(ExitCode::internal));
    try {
        finalise(meeting_);
    } catch (const std::exception& error) {
        log::here(log::Level::error, error.what());
    }
}

void MpiEnvironment::leave_thread_behind() noexcept {
    thread_left_behind = true;
}

bool MpiEnvironment::has_left_thread_behind() noexcept {
    return thread_left_behind;
}

void MpiEnvironment::abort(int exit_code) noexcept {
    if (mpi_runs()) {
        end_this_process_soon(exit_code);
        MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    std::_Exit(exit_code);
}

bool MpiEnvironment::launched_as_rank() {
    // mpirun of Open MPI 4 and 5; srun --mpi=pmix and mpirun 5; srun with any other plugin.
    return started_by_mpirun() || std::getenv("PMIX_RANK") != nullptr ||
           integer_variable("SLURM_STEP_NUM_TASKS") > 1;
}

int MpiEnvironment::launched_rank() {
    for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
        if (std::getenv(variable) != nullptr)
            return integer_variable(variable);
    return 0;
}

std::string MpiEnvironment::library_version() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_TRY(MPI_Get_library_version(text, &length));
    const std::string whole{text, static_cast<std::size_t>(length)};
    return whole.substr(0, whole.find_first_of(",\n"));
}

}  // namespace hetseq
