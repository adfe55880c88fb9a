#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/command_line/command_usage.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"

#include "documents.hpp"
#include "hetseq/version.hpp"

namespace hetseq {

namespace {

// Escapes text for troff. A backslash or a dash would change, and a dot or a quote at the start of
// a line would be a request.
std::string plain(const std::string& text) {
    std::string result;
    if (!text.empty() && (text.front() == '.' || text.front() == '\''))
        result = "\\&";
    for (char c : text) {
        if (c == '\\')
            result += "\\e";
        else if (c == '-')
            result += "\\-";
        else
            result += c;
    }
    return result;
}

std::string bold(const std::string& text) {
    return "\\fB" + plain(text) + "\\fR";
}

std::string italic(const std::string& text) {
    return "\\fI" + plain(text) + "\\fR";
}

std::string entry(const std::string& head, const std::string& text) {
    return ".TP\n" + head + "\n" + plain(text) + "\n";
}

std::string synopsis() {
    std::string text =
        ".SH SYNOPSIS\n.B mpirun\n\\-np N\n.B hetseq train\nCONFIG.cfg [\\-\\-OPTION VALUE ...]\n";
    for (const CommandEntry& command : command_table())
        for (const CommandForm& form : command.description.forms) {
            const std::string called = called_as(command.description, form);
            const std::string rest = usage_of(command.description, form).substr(called.size());
            text += ".br\n.B " + plain(called) + "\n" +
                    (rest.empty() ? "" : plain(rest.substr(1)) + "\n");
        }
    return text + ".br\n.B hetseq\n" + plain("--help | --version") + "\n";
}

// Indents what follows an entry.
std::string indented(const std::string& entries) {
    return entries.empty() ? "" : ".RS\n" + entries + ".RE\n";
}

std::string form_entries(const CommandForm& form) {
    std::string text;
    for (const CommandArgument& argument : form.arguments)
        text += entry(italic(argument.name), argument.help + ".");
    for (const OptionSpec& option : form.own_options) {
        const bool shows_default = !option.type.empty() && !option.default_value.empty();
        text +=
            entry(bold("--" + option.name) + (option.type.empty() ? "" : " " + italic(option.type)),
                  option.help + (shows_default ? "; default " + option.default_value : "") + ".");
    }
    return text;
}

std::string commands() {
    std::string text = ".SH COMMANDS\n";
    for (const CommandEntry& command : command_table()) {
        const CommandDescription& description = command.description;
        text += entry(bold(description.name), description.help + ".");
        std::string forms;
        for (const CommandForm& form : description.forms)
            if (form.word.empty())
                forms += form_entries(form);
            else
                forms += entry(bold(form.word), form.help + ".") + indented(form_entries(form));
        text += indented(forms);
    }
    return text;
}

std::string option_entry(const OptionSpec& option) {
    std::string text = explained(option);
    if (!option.type.empty() && !option.default_value.empty())
        text += "; default " + option.default_value;
    if (option.scope == OptionScope::rank)
        text += ". May differ over ranks";
    const std::string type = option.type.empty() ? "" : " " + italic(option.type);
    return entry(bold("--" + option.name) + type, text + ".");
}

std::string options(const Parts& parts) {
    std::string text =
        ".SH OPTIONS\n" +
        plain(
            "Options stand on the command line or, without the dashes, in a configuration; the "
            "command line wins. train takes all of them; another command takes those that it uses "
            "(hetseq COMMAND --help) and refuses others on its command line.") +
        "\n";
    std::string group;
    for (const OptionSpec& option : option_table(parts)) {
        if (option.group != group)
            text += ".SS " + plain(option.group) + "\n";
        group = option.group;
        text += option_entry(option);
    }
    return text;
}

std::string tasks(const Parts& parts) {
    std::string text = ".SH TASKS\n";
    for (const std::string& name : parts.tasks.names()) {
        const TaskPart& task = parts.tasks.get(name);
        std::string defaults;
        for (const auto& [option, value] : task.defaults)
            defaults += " --" + option + " " + value;
        text += entry(bold(name),
                      task.help + (defaults.empty() ? "" : "; it has these defaults:" + defaults));
    }
    return text;
}

// docs/exit-codes.md tells more.
std::string exit_status() {
    const std::pair<ExitCode, const char*> meanings[] = {
        {ExitCode::finished, "finished"},
        {ExitCode::usage, "the command or a word beside its options is wrong"},
        {ExitCode::bad_data, "a file's contents are bad, or the loss was not finite too often"},
        {ExitCode::missing_input, "a file is missing"},
        {ExitCode::internal, "an internal error"},
        {ExitCode::device, "a GPU or the communication failed"},
        {ExitCode::io, "reading or writing failed"},
        {ExitCode::stopped, "stopped early; the same command continues the run"},
        {ExitCode::config, "an option is unknown, or its value or the combination is wrong"},
    };
    std::string text = ".SH EXIT STATUS\nEvery rank ends with the same code.\n";
    for (const auto& [code, meaning] : meanings)
        text += entry(std::to_string(static_cast<int>(code)), std::string(meaning) + ".");
    return text;
}

}  // namespace

// No date: the same sources give the same page.
std::string man_page(const Parts& parts) {
    return ".TH HETSEQ 1 \"\" \"hetseq " + plain(version::number) + "\"\n" +
           ".SH NAME\nhetseq \\- data\\-parallel training on unlike GPUs\n" + synopsis() +
           ".SH DESCRIPTION\n" +
           plain(
               "Trains one model with one MPI rank per device. The devices may differ: each gets the share of the "
               "batch that it computes in the same time as the others, and the result is that of one large device.") +
           "\n" + commands() + options(parts) + tasks(parts) + exit_status() +
           ".SH SEE ALSO\n.BR mpirun (1)\n";
}

}  // namespace hetseq
