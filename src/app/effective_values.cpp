#include "hetseq/app/effective_values.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

OptionValues effective_values(const GivenOptions& given, const Parts& parts) {
    OptionValues values;
    for (const OptionSpec& spec : option_table())
        values[spec.name] = spec.default_value;
    const auto lookup = [&](const std::string& name) {
        const auto on_line = given.line.find(name);
        if (on_line != given.line.end())
            return on_line->second;
        const auto in_file = given.file.find(name);
        return in_file != given.file.end() ? in_file->second : std::string();
    };
    const std::string task = lookup("task");
    if (task.empty())
        throw BadConfig(
            "no task was given", "--task", "use one of " + join(parts.tasks.names(), ", "));
    const TaskPart& part = parts.tasks.get(task);
    values["model"] = part.model;
    values["dataset"] = part.dataset;
    values["batching"] = part.batching;
    for (const auto& [name, value] : part.defaults)
        values.at(name) = value;
    for (const auto& [name, value] : given.file)
        values[name] = value;
    for (const auto& [name, value] : given.line)
        values[name] = value;
    return values;
}

}  // namespace hetseq
