#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace hetseq {

/// How one collective went, shared by the thread that runs it and the one that waits.
class CollectiveResult {
public:
    /// Blocks until complete; throws what the collective threw.
    void wait();
    bool done() const;
    double own_ms() const;

    void complete(double own_ms, std::exception_ptr failure);

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    double own_ms_ = 0;
    std::exception_ptr failure_;
};

enum class RunOn { own_thread, caller };

/// Runs collectives one after the other, in the order in which they come. It uses its own thread,
/// or runs them at once on the caller's thread where MPI allows calls from only one. Once a
/// collective has failed, every later one fails with the same exception, since the ranks are no
/// longer in step.
class CollectiveThread {
public:
    explicit CollectiveThread(RunOn run_on);
    /// Ends the thread once all that was enqueued has run.
    ~CollectiveThread();
    CollectiveThread(const CollectiveThread&) = delete;
    CollectiveThread& operator=(const CollectiveThread&) = delete;

    std::shared_ptr<CollectiveResult> enqueue(std::function<void()> collective);

    /// Waits like `result.wait()`, but the caller itself runs what the thread has not begun yet:
    /// handing a small collective over and back takes longer than the collective.
    void finish(CollectiveResult& result);

private:
    struct Entry {
        std::function<void()> collective;
        std::shared_ptr<CollectiveResult> result;
    };

    void run();
    void run_next(std::unique_lock<std::mutex>& lock);
    void run_one(Entry entry);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Entry> queue_;
    bool is_running_ = false;  // an entry, on either thread: one at a time
    bool ending_ = false;
    std::exception_ptr failure_;  // of the first that failed; used by whoever runs an entry
    std::thread thread_;
};

}  // namespace hetseq
