#include "hetseq/command_line/command_usage.hpp"

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_options_listed = 3;

std::string usage_of(const CommandArgument& argument) {
    switch (argument.count) {
        case CommandArgument::Count::one:
            return argument.name;
        case CommandArgument::Count::optional:
            return "[" + argument.name + "]";
        case CommandArgument::Count::many:
            return argument.name + "...";
    }
    return "";
}

std::string table_options(const CommandForm& form) {
    if (form.options.size() > most_options_listed)
        return " [--OPTION VALUE ...]";
    std::string text;
    for (const OptionSpec& option : form.options)
        text += " " + usage_of(option);
    return text;
}

}  // namespace

std::string usage_of(const OptionSpec& option) {
    const std::string text = "--" + option.name + (option.is_switch() ? "" : " " + option.type);
    return option.is_required ? text : "[" + text + "]";
}

std::string called_as(const CommandDescription& command, const CommandForm& form) {
    return "hetseq " + command.name + (form.word.empty() ? "" : " " + form.word);
}

std::string usage_of(const CommandDescription& command, const CommandForm& form) {
    std::string text = called_as(command, form);
    for (const CommandArgument& argument : form.arguments)
        text += " " + usage_of(argument);
    for (const OptionSpec& option : form.own_options)
        text += " " + usage_of(option);
    return text + table_options(form);
}

std::vector<std::string> usage_lines(const CommandDescription& command) {
    std::vector<std::string> lines;
    for (const CommandForm& form : command.forms)
        lines.push_back(usage_of(command, form));
    return lines;
}

}  // namespace hetseq
