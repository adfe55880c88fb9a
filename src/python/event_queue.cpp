#include "event_queue.hpp"

#include <cstddef>
#include <utility>

namespace hetseq {

namespace {
constexpr std::size_t most_waiting = 10000;
}

void EventQueue::begin() {
    const std::lock_guard lock{mutex_};
    waiting_ = {};
    failure_.clear();
}

void EventQueue::put(const std::string& kind, const std::string& info) {
    std::unique_lock lock{mutex_};
    taken_.wait(lock, [&] { return waiting_.kinds.size() < most_waiting; });
    waiting_.kinds.push_back(kind);
    waiting_.infos.push_back(info);
}

EventQueue::Events EventQueue::take() {
    const std::lock_guard lock{mutex_};
    taken_.notify_all();
    return std::exchange(waiting_, {});
}

void EventQueue::fail(const std::string& traceback) {
    const std::lock_guard lock{mutex_};
    if (failure_.empty())
        failure_ = traceback;
}

std::string EventQueue::failure() const {
    const std::lock_guard lock{mutex_};
    return failure_;
}

EventQueue& event_queue() {
    static EventQueue queue;
    return queue;
}

}  // namespace hetseq
