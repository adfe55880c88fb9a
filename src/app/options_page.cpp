#include "hetseq/app/options_page.hpp"

#include "hetseq/util/text.hpp"
#include "hetseq/app/command_table.hpp"
#include "hetseq/app/option_choices.hpp"
#include "hetseq/app/options.hpp"

namespace hetseq {

namespace {

// A table's cell: what Markdown would read as its own is escaped.
std::string cell(const std::string& text) {
    std::string result;
    for (char c : text) {
        if (c == '|' || c == '<' || c == '*')
            result += '\\';
        result += c;
    }
    return result;
}

// Inside a table '|' is the cell's end even in code.
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

std::string row(const OptionSpec& option, const Parts& parts) {
    const bool is_switch = option.type.empty();
    const bool has_default = !is_switch && !option.default_value.empty();
    return "| " + code("--" + option.name + (is_switch ? "" : " " + option.type)) + " | " +
           (has_default ? code(option.default_value) : "") + " | " + scope_of(option) + " | " +
           cell(explained(option, parts)) + " |\n";
}

std::vector<std::string> commands_with_options() {
    std::vector<std::string> names;
    for (const CommandEntry& command : command_table())
        if (command.takes_options)
            names.push_back(code(command.name));
    return names;
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
        "Made from the program's own table; `hetseq document options > docs/options.md` makes it again.\n\n"
        "They stand on the command line or, without the dashes, in a configuration (`lr = 0.1`, comments after `#`); the\n"
        "command line wins, and a task has defaults of its own (at the end). Those of the *job* must agree over ranks, those of a\n"
        "*rank* may differ by command line or list, and those of the *command* are not recorded in `RUN/config.cfg`.\n"
        "The commands " +
        join(commands_with_options(), ", ") +
        " take them; `hetseq COMMAND --help` has the words of the others.\n";
    std::string group;
    for (const OptionSpec& option : option_table()) {
        if (option.group != group)
            text += "\n## " + option.group +
                    "\n\n| option | default | of the | meaning |\n|---|---|---|---|\n";
        group = option.group;
        text += row(option, parts);
    }
    text += "\n## Tasks\n\n| `--task` | what | its defaults |\n|---|---|---|\n";
    for (const std::string& name : parts.tasks.names())
        text += task_row(name, parts.tasks.get(name));
    return text;
}

}  // namespace hetseq
