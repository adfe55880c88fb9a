#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace hetseq {

/// Events of a run on their way to the callbacks of a task in Python. The trainer puts them in, and
/// a thread of Python takes all that wait, now and then: so the trainer does not enter Python.
class EventQueue {
public:
    struct Events {
        std::vector<std::string> kinds;  // "update" and so on
        std::vector<std::string> infos;  // an object of JSON for each
    };

    /// For another run: nothing waits, and nothing has failed.
    void begin();
    /// Waits where the callbacks are very far behind.
    void put(const std::string& kind, const std::string& info);
    Events take();
    /// `traceback`: of what a callback has thrown; the first one counts.
    void fail(const std::string& traceback);
    /// Empty: none has failed.
    std::string failure() const;

private:
    mutable std::mutex mutex_;
    std::condition_variable taken_;
    Events waiting_;
    std::string failure_;
};

/// That of this process, in which one run trains at a time.
EventQueue& event_queue();

}  // namespace hetseq
