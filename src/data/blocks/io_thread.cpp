#include "hetseq/data/blocks/io_thread.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include <pthread.h>

namespace hetseq {

struct IoThread::Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    bool closed = false;
    bool ended = false;  // from now on the thread touches nothing but the queue
    std::atomic<bool> abandoned{false};
};

IoThread::IoThread(IoThreading threading) : IoThread{threading, Options{}} {}

IoThread::IoThread(IoThreading threading, Options options)
    : threading_{threading},
      options_{std::move(options)},
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
        abandon();
    else
        thread_.join();
}

// After this returns, other threads may use HDF5 and MPI may end. So this waits for the thread as
// long as it may still come.
void IoThread::abandon() {
    std::unique_lock lock{queue_->mutex};
    if (queue_->changed.wait_for(lock, options_.patience, [&] { return queue_->ended; })) {
        lock.unlock();
        thread_.join();
        return;
    }
    lock.unlock();
    thread_.detach();
    if (options_.left_behind)
        options_.left_behind();
}

// An abandoned thread also runs the tasks that are queued: the next task of a reader tells its
// peers that it stops.
void IoThread::work(const std::shared_ptr<Queue>& queue) {
    pthread_setname_np(pthread_self(), "hetseq-io");
    std::unique_lock lock{queue->mutex};
    while (true) {
        queue->changed.wait(lock, [&] { return queue->closed || !queue->tasks.empty(); });
        if (queue->tasks.empty())
            break;
        {
            const std::function<void()> task = std::move(queue->tasks.front());
            queue->tasks.pop_front();
            lock.unlock();
            task();
        }
        lock.lock();
    }
    queue->ended = true;
    queue->changed.notify_all();
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
