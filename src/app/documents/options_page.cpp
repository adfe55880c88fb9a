#include "hetseq/util/text.hpp"
#include "hetseq/command_line/command_usage.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"

#include "documents.hpp"

namespace hetseq {

namespace {

// A table's cell, with Markdown's special characters escaped.
std::string cell(const std::string& text) {
    std::string result;
    for (char c : text) {
        if (c == '|' || c == '<' || c == '*')
            result += '\\';
        result += c;
    }
    return result;
}

// Inside a table, '|' ends the cell even in code.
std::string code(const std::string& text) {
    std::string result;
    for (char c : text)
        result += c == '|' ? std::string("\\|") : std::string{c};
    return "`" + result + "`";
}

std::string scope_of(const OptionSpec& option) {
    switch (option.scope) {
        case OptionScope::job:
            return "job";
        case OptionScope::rank:
            return "rank";
        case OptionScope::command:
            return "command";
    }
    return "";
}

std::string row(const OptionSpec& option) {
    const bool is_switch = option.type.empty();
    const bool has_default = !is_switch && !option.default_value.empty();
    return "| " + code("--" + option.name + (is_switch ? "" : " " + option.type)) + " | " +
           (has_default ? code(option.default_value) : "") + " | " + scope_of(option) + " | " +
           cell(explained(option)) + " |\n";
}

// The usage of the form, and which of the options above it uses.
std::string form_row(const CommandDescription& command, const CommandForm& form) {
    const bool takes_most = 2 * form.options.size() > option_table().size();
    std::vector<std::string> listed;
    for (const OptionSpec& option : takes_most ? option_table() : form.options)
        if (!takes_most || !form.uses(option))
            listed.push_back(code("--" + option.name));
    const std::string all = listed.empty() ? "all" : "all but ";
    return "| " + code(usage_of(command, form)) + " | " +
           cell(form.help.empty() ? command.help : form.help) + " | " + (takes_most ? all : "") +
           join(listed, " ") + " |\n";
}

std::string task_row(const std::string& name, const TaskPart& task) {
    std::string text = "| " + code(name) + " | " + cell(task.help) + " | ";
    text += "`--model " + task.model + "` `--dataset " + task.dataset + "` `--batching " +
            task.batching + "`";
    for (const auto& [option, value] : task.defaults)
        text += " " + code("--" + option + " " + value);
    return text + " |\n";
}

}  // namespace

std::string options_page(const Parts& parts) {
    std::string text =
        "# Options\n\n"
        "This page is made from the program's own tables; `hetseq document options > docs/options.md` makes it again.\n\n"
        "Options stand on the command line or, without the dashes, in a configuration (`lr = 0.1`, comments after `#`). The\n"
        "command line wins over the configuration, and both win over a task's own defaults (listed at the end). Options of the\n"
        "*job* must be the same on all ranks. Options of a *rank* may differ, by command line or by list. Options of the\n"
        "*command* are not recorded in `RUN/config.cfg`. A configuration may hold any of them and serve all commands. On its\n"
        "command line, a command accepts only the options that it uses: the last table lists them, and `hetseq COMMAND --help`\n"
        "also explains the command's own words. A task in Python has options besides, its own and those of its data\n"
        "(`--cache-data`, `--data-workers`, `--shuffle-buffer`; [`docs/python.md`](python.md)):\n"
        "`--help` behind `hetseq train FILE.py:CLASS` lists them.\n";
    std::string group;
    for (const OptionSpec& option : option_table(parts)) {
        if (option.group != group)
            text += "\n## " + option.group +
                    "\n\n| option | default | of the | meaning |\n|---|---|---|---|\n";
        group = option.group;
        text += row(option);
    }
    text += "\n## Tasks\n\n| `--task` | what | its defaults |\n|---|---|---|\n";
    for (const std::string& name : parts.tasks.names())
        text += task_row(name, parts.tasks.get(name));
    text += "\n## Commands\n\n| usage | what | options it uses |\n|---|---|---|\n";
    for (const CommandEntry& command : command_table())
        for (const CommandForm& form : command.description.forms)
            text += form_row(command.description, form);
    return text;
}

}  // namespace hetseq
