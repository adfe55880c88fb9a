#include "hetseq/util/text.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"

#include "completed_calls.hpp"
#include "documents.hpp"

namespace hetseq {

namespace {

// The functions that need no table. bash splits words at '=' and ':', so --io=serial and file:PATH
// arrive as three words each. The last of them is completed.
constexpr const char* bash_functions = R"(
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

# Sets command and form, of the words before the cursor.
_hetseq_call() {
    local word
    command=${COMP_WORDS[1]}
    _hetseq_form
    for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
        if [[ " $words " == *" $word "* ]]; then
            form=$word
            _hetseq_form
            return
        fi
    done
}

_hetseq() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=$((COMP_CWORD - 1)) command='' form='' option=''
    local words='' argument='' options='' value=''
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _hetseq_offer "$_hetseq_commands help version --help --version"
        return
    fi
    _hetseq_call
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
    if [[ $cur == -* ]]; then
        _hetseq_offer "$options --help"
    elif [[ -n $words ]]; then
        _hetseq_offer "$words"
    else
        _hetseq_files "$argument"
    fi
}

# mpirun -np 2 hetseq train ...: the words from the last hetseq on are completed as without mpirun. Before it, and after a
# ':' that begins another program, whatever completed mpirun before goes on doing so.
_hetseq_launched() {
    local i earlier=${_hetseq_earlier[${COMP_WORDS[0]##*/}]-}
    local -a line=("${COMP_WORDS[@]}")
    for ((i = COMP_CWORD - 1; i > 0; i--)); do
        if [[ ${line[i]} == : && ${line[i - 1]} != file ]]; then
            break
        fi
        if [[ ${line[i]##*/} == hetseq && ! -d ${line[i]} ]]; then
            local -a COMP_WORDS=("${line[@]:i}")
            local COMP_CWORD=$((COMP_CWORD - i))
            _hetseq
            return
        fi
    done
    COMPREPLY=()
    if [[ -n $earlier ]]; then
        "$earlier" "$@"
    fi
}

_hetseq_register() {
    local launcher
    declare -gA _hetseq_earlier
    complete -o bashdefault -o default -F _hetseq hetseq
    for launcher in mpirun mpiexec srun; do
        if [[ $(complete -p "$launcher" 2>/dev/null) =~ \ -F\ ([^\ ]+) &&
            ${BASH_REMATCH[1]} != _hetseq_launched ]]; then
            _hetseq_earlier[$launcher]=${BASH_REMATCH[1]}
        fi
        complete -o bashdefault -o default -F _hetseq_launched "$launcher"
    done
}
_hetseq_register
)";

std::string bash_quoted(const std::string& text) {
    return "'" + text + "'";
}

std::string value_case(const std::string& patterns, const std::string& value) {
    return "        " + patterns + ") value=" + bash_quoted(value) + " ;;\n";
}

// Names with their dashes; the form that takes all needs no list of its own.
std::string options_text(const CommandForm& form, const OptionTable& table) {
    std::vector<std::string> names;
    for (const OptionSpec& option : form.own_options)
        names.push_back("--" + option.name);
    if (form.options.size() == option_table().size())
        return names.empty() ? "\"$_hetseq_options\""
                             : "\"$_hetseq_options " + join(names, " ") + "\"";
    for (const OptionSpec& spec : table)
        if (form.uses(spec))
            names.push_back("--" + spec.name);
    return bash_quoted(join(names, " "));
}

std::string form_case(const CommandDescription& command,
                      const CommandForm& form,
                      const std::vector<std::string>& words,
                      const OptionTable& table) {
    const std::string argument =
        form.arguments.empty() ? "" : kind_text(value_kind(form.arguments.front().name));
    return "        " + bash_quoted(command.name + " " + form.word) +
           ") words=" + bash_quoted(join(words, " ")) + " argument=" + bash_quoted(argument) +
           " options=" + options_text(form, table) + " ;;\n";
}

std::string command_cases(const CommandDescription& command, const OptionTable& table) {
    const std::vector<std::string> words = command.words();
    std::string text;
    if (!words.empty())
        text += form_case(command, union_of(command), words, table);
    for (const CommandForm& form : command.forms)
        text += form_case(command, form, {}, table);
    return text;
}

std::string own_option_cases() {
    std::string text;
    for (const CommandEntry& command : command_table())
        for (const OptionSpec& option : union_of(command.description).own_options)
            if (!option.type.empty())
                text += value_case(bash_quoted(command.description.name + " --" + option.name),
                                   offered_values(option));
    return text;
}

std::string option_cases(const Parts& parts) {
    std::string text;
    for (const OptionSpec& option : option_table(parts)) {
        if (option.type.empty())
            continue;
        text += value_case("*' --" + option.name + "'", offered_values(option));
    }
    return text;
}

}  // namespace

std::string bash_completion(const Parts& parts) {
    const OptionTable table = option_table(parts);
    std::vector<std::string> commands;
    std::string cases;
    for (const CommandEntry& command : command_table()) {
        commands.push_back(command.description.name);
        cases += command_cases(command.description, table);
    }
    std::vector<std::string> options;
    for (const OptionSpec& option : table)
        options.push_back("--" + option.name);
    return "# bash completion of hetseq, made by `hetseq document bash`\n"
           "# shellcheck shell=bash disable=SC2034\n"
           "_hetseq_commands=" +
           bash_quoted(join(commands, " ")) +
           "\n_hetseq_options=" + bash_quoted(join(options, " ")) +
           "\n\n# Sets words, argument and options of $command and its $form.\n"
           "_hetseq_form() {\n    case \"$command $form\" in\n" +
           cases +
           "    esac\n}\n\n# Sets value: what $option of $command takes; nothing for a switch.\n"
           "_hetseq_option() {\n    case \"$command $option\" in\n" +
           own_option_cases() + option_cases(parts) + "    esac\n}\n" + bash_functions;
}

}  // namespace hetseq
