#include "python_listener.hpp"

#include <set>
#include <string>

#include "hetseq/util/error.hpp"

#include "event_queue.hpp"
#include "python_calls.hpp"

namespace hetseq {

namespace {

std::string name_of(ToldEvent event) {
    switch (event) {
        case ToldEvent::start:
            return "start";
        case ToldEvent::update:
            return "update";
        case ToldEvent::validation:
            return "validation";
        case ToldEvent::checkpoint:
            return "checkpoint";
        case ToldEvent::end:
            return "end";
    }
    return "";
}

class PythonListener final : public RunListener {
public:
    explicit PythonListener(const PythonTask& task)
        : heard_{task.events.begin(), task.events.end()} {}

    bool hears(ToldEvent event) const override { return heard_.count(name_of(event)) > 0; }

    void tell(ToldEvent event, const std::string& info) override {
        if (!has_begun_) {
            event_queue().begin();
            call_python("hetseq::task_begin_events", {});
            has_begun_ = true;
        }
        event_queue().put(name_of(event), info);
    }

    void require_no_failure() const override {
        const std::string failure = has_begun_ ? event_queue().failure() : "";
        if (!failure.empty())
            throw BadConfig("a callback of the task failed:\n" + failure);
    }

    void finish() override {
        require_no_failure();
        call_python("hetseq::task_end_events", {});
        require_no_failure();
    }

private:
    std::set<std::string> heard_;
    bool has_begun_ = false;  // with the first event, on rank 0 alone
};

}  // namespace

std::shared_ptr<RunListener> make_python_listener(const PythonTask& task) {
    return task.events.empty() ? nullptr : std::make_shared<PythonListener>(task);
}

}  // namespace hetseq
