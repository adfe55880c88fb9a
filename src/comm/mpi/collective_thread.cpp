#include "collective_thread.hpp"

#include <chrono>
#include <utility>

#include "comm/backoff.hpp"
#include <pthread.h>

namespace hetseq {

void CollectiveResult::wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return done_; });
    if (failure_)
        std::rethrow_exception(failure_);
}

bool CollectiveResult::done() const {
    const std::lock_guard lock{mutex_};
    return done_;
}

double CollectiveResult::own_ms() const {
    const std::lock_guard lock{mutex_};
    return own_ms_;
}

void CollectiveResult::complete(double own_ms, std::exception_ptr failure) {
    const std::lock_guard lock{mutex_};
    own_ms_ = own_ms;
    failure_ = std::move(failure);
    done_ = true;
    changed_.notify_all();
}

CollectiveThread::CollectiveThread(RunOn run_on) {
    if (run_on == RunOn::own_thread)
        thread_ = std::thread{&CollectiveThread::run, this};
}

CollectiveThread::~CollectiveThread() {
    {
        const std::lock_guard lock{mutex_};
        ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable())
        thread_.join();
}

std::shared_ptr<CollectiveResult> CollectiveThread::enqueue(std::function<void()> collective) {
    Entry entry{std::move(collective), std::make_shared<CollectiveResult>()};
    auto result = entry.result;
    if (!thread_.joinable()) {
        run_one(std::move(entry));
        return result;
    }
    {
        const std::lock_guard lock{mutex_};
        queue_.push_back(std::move(entry));
    }
    changed_.notify_all();
    return result;
}

void CollectiveThread::finish(CollectiveResult& result) {
    {
        std::unique_lock lock{mutex_};
        if (!is_running_ && !queue_.empty())
            sleep_precisely();
        while (!is_running_ && !queue_.empty() && !result.done())
            run_next(lock);
    }
    result.wait();
}

void CollectiveThread::run() {
    pthread_setname_np(pthread_self(), "hetseq-reduce");
    sleep_precisely();
    std::unique_lock lock{mutex_};
    for (;;) {
        changed_.wait(lock, [&] { return !is_running_ && (ending_ || !queue_.empty()); });
        if (queue_.empty())
            return;
        run_next(lock);
    }
}

// Releases the lock meanwhile.
void CollectiveThread::run_next(std::unique_lock<std::mutex>& lock) {
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    is_running_ = true;
    lock.unlock();
    run_one(std::move(entry));
    lock.lock();
    is_running_ = false;
    if (ending_ || !queue_.empty())
        changed_.notify_all();
}

void CollectiveThread::run_one(Entry entry) {
    const auto start = std::chrono::steady_clock::now();
    if (!failure_) {
        try {
            entry.collective();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    const std::chrono::duration<double, std::milli> own = std::chrono::steady_clock::now() - start;
    entry.collective = nullptr;  // releases the tensor before anyone learns of the end
    entry.result->complete(own.count(), failure_);
}

}  // namespace hetseq
