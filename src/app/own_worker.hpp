#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <c10/core/DeviceGuard.h>

namespace hetseq {

/// Computes in a thread of its own, while the rank's main thread reads, writes and hands out work.
template <class Task, class Result>
class OwnWorker {
public:
    using Compute = std::function<Result(Task&)>;

    /// `compute` runs with `device` as the current one.
    OwnWorker(Compute compute, c10::Device device)
        : compute_{std::move(compute)}, thread_{[this, device] { run(device); }} {}

    ~OwnWorker() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    OwnWorker(const OwnWorker&) = delete;
    OwnWorker& operator=(const OwnWorker&) = delete;

    void submit(Task task) {
        {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(task));
        }
        changed_.notify_all();
    }

    /// One that is done, in the order of their submission; waits up to `timeout_ms`. Throws what a
    /// computation threw.
    std::optional<Result> receive(int timeout_ms) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] {
            return !done_.empty() || failure_ != nullptr;
        });
        if (failure_ != nullptr)
            std::rethrow_exception(failure_);
        if (done_.empty())
            return std::nullopt;
        std::optional<Result> result{std::move(done_.front())};
        done_.pop_front();
        return result;
    }

private:
    void run(c10::Device device) {
        const c10::DeviceGuard guard(device);
        for (;;) {
            std::optional<Task> task;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
                if (ends_)
                    return;
                task.emplace(std::move(waiting_.front()));
                waiting_.pop_front();
            }
            try {
                Result result = compute_(*task);
                const std::lock_guard lock(mutex_);
                done_.push_back(std::move(result));
            } catch (...) {
                const std::lock_guard lock(mutex_);
                failure_ = std::current_exception();
            }
            changed_.notify_all();
        }
    }

    Compute compute_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> waiting_;
    std::deque<Result> done_;
    std::exception_ptr failure_;
    bool ends_ = false;
    std::thread thread_;  // last: ends before what it uses
};

}  // namespace hetseq
