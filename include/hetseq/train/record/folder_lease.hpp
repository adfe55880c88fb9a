#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <sys/types.h>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/unique_handle.hpp"
#include "hetseq/train/record/lease.hpp"

namespace hetseq {

/// This process, as a holder of leases.
LeaseHolder this_process();
/// Starts of this job before this one, as its script counts them: within it, and through the queue.
std::int64_t earlier_starts_of_job();

/// What a lease needs from outside.
struct LeaseSurroundings {
    LeaseHolder self = this_process();
    LeaseTimes times = {};
    std::function<double()> now;                       // monotonic clock [s]
    std::function<void(double)> sleep;                 // [s]
    std::function<bool(const LeaseHolder&)> is_alive;  // asked about processes of this host
    std::function<bool()> is_asked_to_stop = [] { return false; };

    /// The real ones.
    LeaseSurroundings();
};

/// Keeps other jobs out of a run's folder: RUN/lease.json, whose count a thread raises. Locks of
/// the file system are not used, since network file systems lose them or have none. Without a call
/// of `acquire` nothing is held or checked. One process of the job has one.
class FolderLease {
public:
    static constexpr const char* file_name = "lease.json";

    explicit FolderLease(const std::filesystem::path& folder, LeaseSurroundings surroundings = {});
    /// Removes the lease if it is held.
    ~FolderLease();
    FolderLease(const FolderLease&) = delete;
    FolderLease& operator=(const FolderLease&) = delete;

    /// Waits where another process may have the folder. Throws BadConfig if one has it, IoError if
    /// the lease cannot be written.
    void acquire();
    bool is_held() const noexcept { return held_; }
    /// Looks whether the lease is still this process's. Throws BadConfig if another one took it. If
    /// somebody removed it, it is made again.
    void check();
    /// The same by what was seen last, without a look at the file.
    void check_known() const;
    bool is_lost() const noexcept { return lost_; }
    const std::string& token() const noexcept { return surroundings_.self.token; }

private:
    void wait_for_it();
    void remove_judged(const std::string& judged) const;
    bool create();
    bool is_mine();
    bool is_surely_mine() const;
    bool made_again();
    void beat();
    void keep_beating();
    std::string text() const;

    std::filesystem::path folder_, path_;
    pid_t process_;  // that made this object
    LeaseSurroundings surroundings_;
    std::mutex mutex_;  // of the file and its number of beats
    UniqueHandle<detail::FileDescriptorTraits> file_;
    std::int64_t beats_ = 0;
    std::atomic<bool> held_ = false;
    std::atomic<bool> lost_ = false;
    std::string other_;  // who took it

    struct Beating {
        std::condition_variable changed;
        std::thread thread;
    };
    bool ending_ = false;
    std::unique_ptr<Beating> beating_ = std::make_unique<Beating>();
};

}  // namespace hetseq
