#include "hetseq/session/options/merged_values.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/text/utf8.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/options/part_option_table.hpp"

namespace hetseq {

namespace {

void take(const OptionValues& given, OptionValues& values) {
    for (const auto& [name, value] : given)
        if (values.count(name) != 0)
            values[name] = value;
}

const TaskPart& task_of(const GivenOptions& given, const Parts& parts) {
    for (const OptionValues* place : {&given.line, &given.file}) {
        const auto found = place->find(option_name(any_options().task));
        if (found == place->end())
            continue;
        if (found->second.empty())
            break;
        return parts.tasks.get(found->second);
    }
    throw BadConfig("no task was given", "--task", "use one of " + join(parts.tasks.names(), ", "));
}

// The values of the options in `table`; only they are known here.
OptionValues values_of(const OptionTable& table, const TaskPart& task, const GivenOptions& given) {
    OptionValues values;
    for (const OptionSpec& spec : table)
        values[spec.name] = spec.default_value;
    take({{option_name(any_options().model), task.model},
          {option_name(any_options().dataset), task.dataset},
          {option_name(any_options().batching), task.batching}},
         values);
    take({task.defaults.begin(), task.defaults.end()}, values);
    take(given.file, values);
    take(given.line, values);
    return values;
}

std::string owners_of(const OptionSpec& spec) {
    std::vector<std::string> owners;
    for (const OptionOwner& owner : spec.owners)
        owners.push_back("--" + owner.option + " " + owner.part);
    return join(owners, ", ");
}

[[noreturn]] void refuse(const OptionSpec& spec, const OptionValues& values) {
    const std::string& chosen = spec.owners.front().option;
    throw BadConfig(
        "--" + spec.name + " is not known here",
        "it belongs to " + owners_of(spec) + "; --" + chosen + " is '" + values.at(chosen) + "'",
        "leave it out or choose the part that has it");
}

// A configuration may hold it for other parts; who types it expects something of it.
void warn_of_idle(const OptionSpec& spec, const OptionValues& values) {
    const std::string& chosen = spec.owners.front().option;
    log::warn("--" + spec.name + " has no effect (it belongs to " + owners_of(spec) + "; --" +
              chosen + " is '" + values.at(chosen) +
              "'): leave it out or choose the part that has it");
}

// What has no effect must be right all the same.
void check_ignored(const OptionSpec& spec, const GivenOptions& given) {
    OptionValues value;
    for (const OptionValues* place : {&given.file, &given.line})
        if (const auto found = place->find(spec.name); found != place->end())
            value = {{spec.name, found->second}};
    typed_options(value, {spec});
}

// An option of a part that was not chosen would do nothing. Where it is no option that may be
// ignored, a configuration may hold it with its default, or where the command line alone chose
// another part.
void check_owned_options(const OptionTable& table,
                         const TaskPart& task,
                         const GivenOptions& given,
                         const OptionValues& values) {
    const OptionValues by_file = values_of(option_table(), task, {{}, given.file});
    for (const OptionSpec& spec : table) {
        if (is_in_use(spec, values))
            continue;
        if (spec.is_ignored_elsewhere) {
            check_ignored(spec, given);
            if (given.line.count(spec.name) != 0)
                warn_of_idle(spec, values);
            continue;
        }
        const auto in_file = given.file.find(spec.name);
        const bool is_idle = in_file != given.file.end() && in_file->second != spec.default_value &&
                             !is_in_use(spec, by_file);
        if (given.line.count(spec.name) != 0 || is_idle)
            refuse(spec, values);
    }
}

}  // namespace

OptionValues merged_values(const GivenOptions& given, const Parts& parts) {
    const TaskPart& task = task_of(given, parts);
    const OptionTable table = option_table(parts);
    const OptionValues common = values_of(option_table(), task, given);
    check_owned_options(table, task, given, common);
    return values_of(options_in_use(parts, common), task, given);
}

void check_encoding(const OptionValues& values) {
    for (const auto& [name, value] : values)
        if (valid_utf8_bytes(value) != value.size())
            throw BadConfig("the value of --" + name + " is not UTF-8",
                            "a checkpoint could not hold it",
                            "rename what it names, or reach it by a link with another name");
}

}  // namespace hetseq
