#include "hetseq/train/record/folder_lease.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/temporary_name.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/process_stat.hpp"
#include "hetseq/comm/host/host_name.hpp"

#include <fcntl.h>
#include <pthread.h>

namespace hetseq {

namespace fs = std::filesystem;

namespace {

// /proc may hide the processes of other users, which kill still knows.
bool is_alive(const LeaseHolder& holder) {
    const std::optional<ProcessStat> stat = process_stat(holder.pid);
    if (!stat)
        return ::kill(static_cast<pid_t>(holder.pid), 0) == 0 || errno != ESRCH;
    return !stat->has_ended() && stat->start == holder.process_start;
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

// The element's number where all elements of an array have one id. It is "undefined" or "0" in jobs
// without elements.
std::string job_id() {
    for (const auto& [id, element] : {std::pair{"SLURM_JOB_ID", ""},
                                      std::pair{"PBS_JOBID", ""},
                                      std::pair{"LSB_JOBID", "LSB_JOBINDEX"},
                                      std::pair{"JOB_ID", "SGE_TASK_ID"}}) {
        if (variable(id).empty())
            continue;
        const std::string number = *element != 0 ? variable(element) : "";
        return variable(id) + (number.empty() ? "" : "." + number);
    }
    return "";
}

std::string pid_namespace() {
    std::error_code unknown;
    return fs::read_symlink("/proc/self/ns/pid", unknown).string();
}

// Empty if there is none. Throws IoError if it cannot be read: it may be another user's.
std::optional<std::string> read_lease(const fs::path& path) {
    const UniqueHandle<detail::FileDescriptorTraits> file{
        ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
    std::array<char, 4096> text{};
    const ssize_t bytes = file ? ::read(file.get(), text.data(), text.size()) : -1;
    if (bytes < 0 && (errno == ENOENT || errno == ESTALE))
        return std::nullopt;
    if (bytes < 0)
        throw IoError("cannot read " + path.string(),
                      std::strerror(errno),
                      "it says who trains into this folder: choose another --save-dir");
    return std::string(text.data(), static_cast<std::size_t>(bytes));
}

}  // namespace

LeaseHolder this_process() {
    const std::optional<ProcessStat> own = process_stat(::getpid());
    return {.token = random_digits(),
            .host = host_name(),
            .boot = machine_id(),
            .pid_namespace = own ? pid_namespace() : "",
            .pid = ::getpid(),
            .process_start = own ? own->start : 0,
            .job = job_id(),
            // From job scripts whose next start has an id of its own.
            .chain = variable("HETSEQ_CHAIN"),
            // From job scripts that start the program again within a job.
            .restarted = std::strtoll(variable("HETSEQ_RESTARTED").c_str(), nullptr, 10)};
}

std::int64_t earlier_starts_of_job() {
    return this_process().restarted +
           std::strtoll(variable("HETSEQ_REQUEUED").c_str(), nullptr, 10);
}

LeaseSurroundings::LeaseSurroundings()
    : now{monotonic_seconds},
      sleep{[](double seconds) {
          std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      }},
      is_alive{hetseq::is_alive} {}

FolderLease::FolderLease(const fs::path& folder, LeaseSurroundings surroundings)
    : folder_{folder},
      path_{folder / file_name},
      process_{::getpid()},
      surroundings_{std::move(surroundings)} {}

// A child that was forked has neither the thread nor the lease. It would wait for that thread even
// where it destroys what the thread waits on.
FolderLease::~FolderLease() {
    if (::getpid() != process_) {
        static_cast<void>(beating_.release());
        return;
    }
    {
        const std::lock_guard lock{mutex_};
        ending_ = true;
    }
    beating_->changed.notify_all();
    if (beating_->thread.joinable())
        beating_->thread.join();
    try {
        if (held_ && !lost_ && is_surely_mine())
            ::unlink(path_.c_str());
    } catch (const std::exception&) {  // the next start sees that this process is gone
    }
}

std::string FolderLease::text() const {
    return lease_json({surroundings_.self, beats_});
}

void FolderLease::acquire() {
    if (held_)
        return;
    do
        wait_for_it();
    while (!create());
    held_ = true;
    beating_->thread = std::thread([this] { keep_beating(); });
}

// Each look opens the file anew: only then does NFS ask its server for what others wrote.
void FolderLease::wait_for_it() {
    LeaseJudge judge(surroundings_.self, surroundings_.times, surroundings_.is_alive);
    bool is_told = false;
    for (;;) {
        const std::optional<std::string> seen = read_lease(path_);
        const LeaseJudge::Verdict verdict = judge.judge(seen, surroundings_.now());
        if (verdict == LeaseJudge::Verdict::take && seen) {
            log::info(folder_.string() + ": " + judge.why() + ", so this job takes its lease");
            remove_judged(*seen);
        }
        if (verdict == LeaseJudge::Verdict::take)
            return;
        if (verdict == LeaseJudge::Verdict::refuse)
            throw BadConfig(folder_.string() + " is in use",
                            judge.why(),
                            "wait for its end, or give another --save-dir");
        if (surroundings_.is_asked_to_stop())
            throw Error(ExitCode::stopped,
                        Explanation{"asked to stop while it waited for " + folder_.string(),
                                    judge.why(),
                                    "start it again"});
        if (!std::exchange(is_told, true))
            log::info(folder_.string() + ": " + judge.why() + "; waits to see whether it lives");
        activity::progress();
        surroundings_.sleep(surroundings_.times.look_s);
    }
}

// Another process may have judged the same and been faster: what is moved may be its new lease,
// which is then put back. Its holder makes one again if it looked in between.
void FolderLease::remove_judged(const std::string& judged) const {
    if (read_lease(path_) != judged)
        return;
    const fs::path other = temporary_beside(path_);
    std::error_code error;
    fs::rename(path_, other, error);
    if (error)
        return;
    if (read_lease(other) != judged) {
        fs::create_hard_link(other, path_, error);
        if (error && error.value() != EEXIST)  // a file system without such links
            fs::rename(other, path_, error);
    }
    fs::remove(other, error);
}

// False if another process was faster.
bool FolderLease::create() {
    UniqueHandle<detail::FileDescriptorTraits> file{
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)};
    if (!file && errno == EEXIST)
        return false;
    const std::string content = text();
    const bool is_written = file &&
                            ::pwrite(file.get(), content.data(), content.size(), 0) ==
                                static_cast<ssize_t>(content.size()) &&
                            ::fsync(file.get()) == 0;
    if (!is_written) {
        const std::string why = std::strerror(errno);
        if (file)
            ::unlink(path_.c_str());
        throw IoError(
            "cannot write " + path_.string(), why, "free space, or choose another --save-dir");
    }
    file_ = std::move(file);
    activity::progress();  // of a slow file system
    return true;
}

// Whether the lease is this process's, as far as can be told: a file system that fails for a while
// takes it from nobody.
bool FolderLease::is_mine() {
    std::optional<std::string> seen;
    try {
        seen = read_lease(path_);
    } catch (const IoError&) {
    }
    if (!seen)
        return true;
    const std::optional<Lease> lease = parse_lease(*seen);
    if (lease && lease->holder.token == surroundings_.self.token)
        return true;
    other_ = lease ? lease->holder.text() : "another process";
    return false;
}

// Throws IoError where that cannot be told.
bool FolderLease::is_surely_mine() const {
    const std::optional<std::string> seen = read_lease(path_);
    const std::optional<Lease> lease = parse_lease(seen.value_or(""));
    return lease && lease->holder.token == surroundings_.self.token;
}

// Where somebody removed it. What fails here fails for whatever is to be written, too.
bool FolderLease::made_again() {
    std::error_code ignored;
    if (fs::exists(path_, ignored) || !fs::is_directory(folder_, ignored))
        return false;
    try {
        return create();
    } catch (const IoError&) {
        return false;
    }
}

void FolderLease::check() {
    if (!held_)
        return;
    {
        const std::lock_guard lock{mutex_};
        if (!lost_ && !made_again() && !is_mine())
            lost_ = true;
    }
    check_known();
}

void FolderLease::check_known() const {
    if (lost_)
        throw BadConfig(folder_.string() + " was taken by " + other_,
                        "this job gave no sign of life for too long, or somebody removed its lease",
                        "it has written nothing since; look at the other job");
}

void FolderLease::beat() {
    const std::lock_guard lock{mutex_};
    if (lost_ || made_again())  // who took it is said once
        return;
    if (!is_mine()) {
        lost_ = true;
        return;
    }
    ++beats_;
    const std::string content = text();
    // In place: this needs no space on a full disk, and does not touch a lease that another
    // process made meanwhile. A beat that fails is one that others do not see.
    if (::pwrite(file_.get(), content.data(), content.size(), 0) > 0)
        ::fdatasync(file_.get());  // other hosts see it then
}

void FolderLease::keep_beating() {
    pthread_setname_np(pthread_self(), "hetseq-lease");
    const std::chrono::duration<double> period{surroundings_.times.beat_s};
    std::unique_lock lock{mutex_};
    while (!lost_ && !beating_->changed.wait_for(lock, period, [&] { return ending_; })) {
        lock.unlock();
        try {
            beat();
        } catch (const std::exception&) {  // the next one may succeed
        }
        lock.lock();
    }
}

}  // namespace hetseq
