#include "python_listener.hpp"

#include <set>
#include <string>

#include "hetseq/util/error.hpp"

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
        if (failure_.empty())
            failure_ =
                call_python("hetseq::task_event", {name_of(event), info}).at(0).toStringRef();
    }

    void require_no_failure() const override {
        if (!failure_.empty())
            throw BadConfig("a callback of the task failed:\n" + failure_);
    }

    void finish() override {
        require_no_failure();
        failure_ = call_python("hetseq::task_end_events", {}).at(0).toStringRef();
        require_no_failure();
    }

private:
    std::set<std::string> heard_;
    std::string failure_;  // the traceback of the first exception
};

}  // namespace

std::shared_ptr<RunListener> make_python_listener(const PythonTask& task) {
    return task.events.empty() ? nullptr : std::make_shared<PythonListener>(task);
}

}  // namespace hetseq
