#include "python_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/session/options/part_option_table.hpp"

#include "python_calls.hpp"
#include "python_collator.hpp"
#include "python_data.hpp"
#include "python_listener.hpp"
#include "python_model.hpp"
#include "python_optimizer.hpp"
#include "python_task.hpp"

namespace hetseq {

namespace {

void check_option_names(const PythonTask& task, const Parts& parts) {
    const OptionTable known = option_table(parts);
    for (const Option<std::string>& own : task.options)
        for (const OptionSpec& option : known)
            if (option.name == own.name())
                throw BadConfig("the task has an option named '" + own.name() + "'",
                                "--" + own.name() + " is an option of hetseq",
                                "give it another name");
}

void check_defaults(const PythonTask& task, const Parts& parts) {
    std::vector<std::string> known;
    for (const OptionSpec& option : option_table(parts))
        known.push_back(option.name);
    for (const auto& [name, value] : task.defaults)
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            const std::string nearest = nearest_name(name, known);
            throw BadConfig(
                "the task's defaults name '" + name + "'",
                "that is no option of hetseq or of the task",
                nearest.empty() ? "see hetseq train --help" : "did you mean " + nearest + "?");
        }
}

}  // namespace

Parts python_task_parts() {
    const PythonTask task = describe_python_task();
    const Parts builtin = builtin_parts();
    Parts parts;
    parts.optimizers = builtin.optimizers;
    parts.schedules = builtin.schedules;
    check_option_names(task, parts);
    parts.models.add(
        "python",
        [task](const PartOptions& options) { return make_python_model(task, options); },
        {task.options.begin(), task.options.end()});
    parts.datasets.add("python",
                       [task](const PartOptions& options) { return python_schema(task, options); });
    parts.batchings.add("python",
                        [task](const PartOptions&) { return make_python_collator(task); });
    if (task.has_optimizer)
        parts.optimizers.add("python", make_python_optimizer);
    if (task.has_schedule)
        parts.schedules.add("python", [](const PartOptions&) -> Schedule {
            return [](std::int64_t update, std::int64_t epoch) {
                return call_python("hetseq::task_schedule", {update, epoch}).at(0).toDouble();
            };
        });
    TaskPart part{.help = "a task of your own in Python",
                  .model = "python",
                  .dataset = "python",
                  .batching = "python",
                  .defaults = task.defaults};
    parts.tasks.add("python", std::move(part));
    check_defaults(task, parts);
    parts.listener = make_python_listener(task);
    return parts;
}

}  // namespace hetseq
