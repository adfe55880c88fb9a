#include "hetseq/data/io_thread.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

namespace hetseq {

struct IoThread::Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    bool closed = false;
    std::atomic<bool> abandoned{false};
};

IoThread::IoThread(IoThreading threading)
    : threading_{threading},
      exceptions_at_start_{std::uncaught_exceptions()},
      queue_{std::make_shared<Queue>()} {
    if (background())
        thread_ = std::thread([queue = queue_] { work(queue); });
}

IoThread::~IoThread() {
    if (!background())
        return;
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
    {
        const std::lock_guard lock{queue_->mutex};
        queue_->closed = true;
        queue_->abandoned = unwinding;
    }
    queue_->changed.notify_all();
    if (unwinding)
        thread_.detach();
    else
        thread_.join();
}

void IoThread::work(const std::shared_ptr<Queue>& queue) {
    while (true) {
        std::unique_lock lock{queue->mutex};
        queue->changed.wait(lock, [&] { return queue->closed || !queue->tasks.empty(); });
        if (queue->tasks.empty() || queue->abandoned)
            return;
        const std::function<void()> task = std::move(queue->tasks.front());
        queue->tasks.pop_front();
        lock.unlock();
        task();
    }
}

void IoThread::post(std::function<void()> task) {
    if (!background()) {
        task();
        return;
    }
    {
        const std::lock_guard lock{queue_->mutex};
        queue_->tasks.push_back(std::move(task));
    }
    queue_->changed.notify_one();
}

std::function<bool()> IoThread::abandoned() const {
    return [queue = queue_] { return queue->abandoned.load(); };
}

}  // namespace hetseq
