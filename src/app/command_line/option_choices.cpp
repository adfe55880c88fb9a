#include "hetseq/app/command_line/option_choices.hpp"

#include <algorithm>

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

template <class Part>
void add_names(const PartTable<Part>& table,
               const OptionSpec& option,
               std::vector<std::string>& names) {
    if (table.option() == "--" + option.name)
        names = table.names();
}

}  // namespace

std::vector<std::string> option_choices(const OptionSpec& option, const Parts& parts) {
    std::vector<std::string> choices = option.set.choices();
    add_names(parts.tasks, option, choices);
    add_names(parts.models, option, choices);
    add_names(parts.datasets, option, choices);
    add_names(parts.batchings, option, choices);
    add_names(parts.optimizers, option, choices);
    add_names(parts.schedules, option, choices);
    return choices;
}

std::string explained(const OptionSpec& option, const Parts& parts) {
    const std::vector<std::string> choices = option_choices(option, parts);
    const auto is_named = [&](const std::string& choice) {
        return option.help.find(choice) != std::string::npos;
    };
    if (std::all_of(choices.begin(), choices.end(), is_named))
        return option.help;
    return option.help + ": " + join(choices, ", ");
}

}  // namespace hetseq
