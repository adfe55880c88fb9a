#include "hetseq/app/bash_completion.hpp"

#include "hetseq/util/text.hpp"
#include "hetseq/app/command_table.hpp"
#include "hetseq/app/command_usage.hpp"
#include "hetseq/app/option_choices.hpp"
#include "hetseq/app/options.hpp"

namespace hetseq {

namespace {

// What needs no table. bash splits words at '=' and ':', so that --io=serial arrives as three and
// file:PATH as three; what is completed is the last of them.
constexpr const char* functions = R"(
# _hetseq_offer WORDS: those that begin as the word does; one that ends in ':' goes on.
_hetseq_offer() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

_hetseq_files() {
    compopt -o filenames 2>/dev/null
    case $1 in
        configuration) mapfile -t COMPREPLY < <(compgen -d -- "$cur" || :; compgen -f -X '!*.cfg' -- "$cur") ;;
        folder) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        file) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    esac
}

_hetseq_value() {
    case $1 in
        configuration | folder | file) _hetseq_files "$1" ;;
        any) compopt +o default +o bashdefault 2>/dev/null ;;
        *) _hetseq_offer "$1" ;;
    esac
}

_hetseq() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=$((COMP_CWORD - 1)) command='' option=''
    local words='' argument='' options='' value='' word given=''
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _hetseq_offer "$_hetseq_commands --help --version"
        return
    fi
    command=${COMP_WORDS[1]}
    _hetseq_command
    if [[ $cur == [=:] ]]; then
        before=$COMP_CWORD cur=''
    fi
    case ${COMP_WORDS[before]} in
        :) _hetseq_files file; return ;;
        =) option=${COMP_WORDS[before - 1]} ;;
        *) option=${COMP_WORDS[before]} ;;
    esac
    if [[ $option == --* ]]; then
        _hetseq_option
        if [[ -n $value ]]; then
            _hetseq_value "$value"
            return
        fi
    fi
    for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
        [[ " $words " == *" $word "* ]] && given=yes
    done
    if [[ $cur == -* ]]; then
        _hetseq_offer "$options --help"
    elif [[ -n $words && -z $given ]]; then
        _hetseq_offer "$words"
    else
        _hetseq_files "$argument"
    fi
}

complete -o bashdefault -o default -F _hetseq hetseq
)";

std::string quoted(const std::string& text) {
    return "'" + text + "'";
}

std::string kind_text(ValueKind kind) {
    switch (kind) {
        case ValueKind::any:
            return "any";
        case ValueKind::file:
            return "file";
        case ValueKind::configuration:
            return "configuration";
        case ValueKind::folder:
            return "folder";
    }
    return "";
}

// "text|json" lists its values, "PATH" names them.
std::string value_text(const std::string& value) {
    const std::vector<std::string> choices = split(value, '|');
    const bool listed = choices.size() > 1 && value == to_lower(value);
    return listed ? join(choices, " ") : kind_text(value_kind(value));
}

std::string value_case(const std::string& patterns, const std::string& value) {
    return "        " + patterns + ") value=" + quoted(value) + " ;;\n";
}

std::string command_case(const CommandEntry& command) {
    const CommandUsage usage = read_usage(command.usage);
    std::vector<std::string> options;
    if (!command.takes_options)
        for (const auto& option : usage.options)
            options.push_back(option.name);
    const ValueKind argument =
        usage.arguments.empty() ? ValueKind::any : value_kind(usage.arguments.front());
    return "        " + command.name + ") words=" + quoted(join(usage.words, " ")) +
           " argument=" + (usage.arguments.empty() ? "''" : kind_text(argument)) + " options=" +
           (command.takes_options ? std::string("$_hetseq_options") : quoted(join(options, " "))) +
           " ;;\n";
}

// The options of commands that take none of the table; before those of the table, since a command
// may mean something else by a name.
std::string own_option_cases() {
    std::string text;
    for (const CommandEntry& command : command_table()) {
        if (command.takes_options)
            continue;
        for (const auto& option : read_usage(command.usage).options)
            text += value_case(quoted(command.name + " " + option.name),
                               option.value.empty() ? "" : value_text(option.value));
    }
    return text;
}

std::string option_cases(const Parts& parts) {
    std::string text;
    for (const OptionSpec& option : option_table()) {
        if (option.type.empty())
            continue;
        const std::string choices = join(option_choices(option, parts), " ");
        text += value_case("*' --" + option.name + "'",
                           choices.empty() ? value_text(option.type) : choices);
    }
    return text;
}

}  // namespace

std::string bash_completion(const Parts& parts) {
    std::vector<std::string> commands;
    std::string command_cases;
    for (const CommandEntry& command : command_table()) {
        commands.push_back(command.name);
        command_cases += command_case(command);
    }
    std::vector<std::string> options;
    for (const OptionSpec& option : option_table())
        options.push_back("--" + option.name);
    return "# bash completion of hetseq, made by `hetseq document bash`\n"
           "# shellcheck shell=bash disable=SC2034\n"
           "_hetseq_commands=" +
           quoted(join(commands, " ")) + "\n_hetseq_options=" + quoted(join(options, " ")) +
           "\n\n# Sets words, argument and options of $command.\n"
           "_hetseq_command() {\n    case $command in\n" +
           command_cases +
           "    esac\n}\n\n# Sets value: what $option of $command takes; nothing for a switch.\n"
           "_hetseq_option() {\n    case \"$command $option\" in\n" +
           own_option_cases() + option_cases(parts) + "    esac\n}\n" + functions;
}

}  // namespace hetseq
