#include "hetseq/command_line/command_help.hpp"

#include <algorithm>
#include <functional>

#include "hetseq/util/text.hpp"
#include "hetseq/command_line/command_examples.hpp"
#include "hetseq/command_line/command_usage.hpp"

namespace hetseq {

namespace {

constexpr std::size_t width_of_names = 30;

std::string line(const std::string& head, const std::string& text) {
    std::string padded = "  " + head;
    padded.resize(std::max(padded.size() + 1, width_of_names), ' ');
    return padded + text + "\n";
}

// `forms_text`: " (data, step)", the forms that take it, where not all do.
std::string option_line(const OptionSpec& option, const std::string& forms_text) {
    const std::string shown = option.shown_default();
    return line("--" + option.name + (option.is_switch() ? "" : " " + option.type),
                explained(option) + forms_text + (shown.empty() ? "" : " [" + shown + "]"));
}

std::string forms_with(const CommandDescription& shown,
                       const std::function<bool(const CommandForm&)>& takes) {
    std::vector<std::string> words;
    for (const CommandForm& form : shown.forms)
        if (takes(form))
            words.push_back(form.word);
    return words.size() == shown.forms.size() ? "" : " (" + join(words, ", ") + ")";
}

std::string forms_text(const CommandDescription& shown) {
    std::string text;
    for (const CommandForm& form : shown.forms)
        if (!form.help.empty())
            text += line(form.word, form.help);
    return text.empty() ? "" : "\n" + text;
}

std::string arguments_text(const CommandDescription& shown) {
    std::vector<std::string> seen;
    std::string text;
    for (const CommandForm& form : shown.forms)
        for (const CommandArgument& argument : form.arguments) {
            if (std::find(seen.begin(), seen.end(), argument.name) != seen.end())
                continue;
            seen.push_back(argument.name);
            text += line(argument.name, argument.help);
        }
    return text.empty() ? "" : "\n" + text;
}

std::string own_options_text(const CommandDescription& shown) {
    std::vector<std::string> seen;
    std::string text;
    for (const CommandForm& form : shown.forms)
        for (const OptionSpec& option : form.own_options) {
            if (std::find(seen.begin(), seen.end(), option.name) != seen.end())
                continue;
            seen.push_back(option.name);
            text += option_line(option, forms_with(shown, [&](const CommandForm& other) {
                                    return other.has_own(option.name);
                                }));
        }
    return text.empty() ? "" : "\n" + text;
}

bool is_used(const CommandDescription& shown, const OptionSpec& spec) {
    return std::any_of(shown.forms.begin(), shown.forms.end(), [&](const CommandForm& form) {
        return form.uses(spec);
    });
}

std::string table_options_text(const CommandDescription& shown, const OptionTable& table) {
    std::string text;
    std::string group;
    for (const OptionSpec& spec : table) {
        if (!is_used(shown, spec))
            continue;
        if (spec.group != group)
            text += "\n" + spec.group + ":\n";
        group = spec.group;
        text += option_line(
            spec, forms_with(shown, [&](const CommandForm& form) { return form.uses(spec); }));
    }
    return text;
}

// Each form's, and the pages that tell more.
std::string examples_text(const CommandDescription& shown) {
    std::string lines;
    std::vector<std::string> pages;
    for (const CommandForm& form : shown.forms) {
        const CommandExample* const example = find_example(shown.name, form.word);
        if (example == nullptr)
            continue;
        lines += "  " + example->line + "\n";
        if (std::find(pages.begin(), pages.end(), example->page) == pages.end())
            pages.push_back(example->page);
    }
    if (lines.empty())
        return "";
    return (shown.forms.size() > 1 ? "\nExamples:\n" : "\nExample:\n") + lines + join(pages, ", ") +
           (pages.size() > 1 ? " tell more.\n" : " tells more.\n");
}

bool takes_configuration(const CommandDescription& shown) {
    for (const CommandForm& form : shown.forms)
        for (const CommandArgument& argument : form.arguments)
            if (argument.name == "CONFIG.cfg")
                return true;
    return false;
}

}  // namespace

std::string command_help(const CommandDescription& command,
                         const std::string& word,
                         const OptionTable& table) {
    CommandDescription shown = command;
    if (const CommandForm* form = command.form(word); form != nullptr)
        shown.forms = {*form};
    std::string text = join(usage_lines(shown), "\n") + "\n\n" + shown.help + "\n" +
                       forms_text(shown) + arguments_text(shown);
    if (takes_configuration(shown))
        text +=
            "\nA configuration holds options of all commands, one in a line: lr = 0.1. The command line "
            "takes those below.\n";
    return text + examples_text(shown) + own_options_text(shown) + table_options_text(shown, table);
}

}  // namespace hetseq
