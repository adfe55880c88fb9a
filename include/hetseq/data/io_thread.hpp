#pragma once

#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

namespace hetseq {

/// Where tasks run: on a thread of their own, or, where threads may not call MPI, on the caller's.
enum class IoThreading { background, inline_in_caller };

/// Runs tasks first-in-first-out on one thread, the only one of a process that touches HDF5.
/// The destructor runs what is queued; while an exception unwinds it abandons the thread instead,
/// since a task may wait for ranks that will never come (tasks own what they use).
class IoThread {
public:
    explicit IoThread(IoThreading threading);
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

    /// True once the thread is abandoned: a task that waits for other ranks gives up.
    std::function<bool()> abandoned() const;

private:
    struct Queue;
    static void work(const std::shared_ptr<Queue>& queue);

    IoThreading threading_;
    int exceptions_at_start_;
    std::shared_ptr<Queue> queue_;
    std::thread thread_;
};

}  // namespace hetseq
