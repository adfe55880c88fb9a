#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

namespace hetseq {

/// Where tasks run: on a thread of their own or, if threads may not call MPI, on the caller's.
enum class IoThreading { background, inline_in_caller };

/// Runs tasks in the order of their arrival on one thread. No other thread of the process touches
/// HDF5. The destructor runs the tasks that are queued. While an exception unwinds, it abandons the
/// thread: tasks see `abandoned()` and return soon. The destructor then waits only for a limited
/// time, since a task may be inside a collective that other ranks will never enter. So tasks own
/// what they use.
class IoThread {
public:
    struct Options {
        /// How long the destructor waits for an abandoned thread. It is longer than a reader waits
        /// for its peers.
        std::chrono::milliseconds patience{10'000};
        /// Called when an abandoned thread is still inside a task after that.
        std::function<void()> left_behind{};
    };

    explicit IoThread(IoThreading threading);
    IoThread(IoThreading threading, Options options);
    ~IoThread();
    IoThread(const IoThread&) = delete;
    IoThread& operator=(const IoThread&) = delete;

    bool background() const noexcept { return threading_ == IoThreading::background; }

    /// Queues `task`, which must not throw.
    void post(std::function<void()> task);
    /// Queues `function` and waits for its result or exception.
    template <class Function>
    auto run(Function&& function) -> std::invoke_result_t<Function> {
        std::packaged_task<std::invoke_result_t<Function>()> task{std::forward<Function>(function)};
        auto result = task.get_future();
        post([&task] { task(); });
        return result.get();
    }

    /// True once the thread is abandoned: a task that waits for other ranks gives up. The function
    /// may outlive the IoThread.
    std::function<bool()> abandoned() const;

private:
    struct Queue;
    static void work(const std::shared_ptr<Queue>& queue);
    void abandon();

    IoThreading threading_;
    Options options_;
    int exceptions_at_start_;
    std::shared_ptr<Queue> queue_;
    std::thread thread_;
};

}  // namespace hetseq
