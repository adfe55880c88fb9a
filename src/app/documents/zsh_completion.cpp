#include "hetseq/util/text.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"

#include "completed_calls.hpp"
#include "documents.hpp"

namespace hetseq {

namespace {

// The functions that need no table. Behind a launcher, the words from the last hetseq on are
// completed as without it.
constexpr const char* zsh_functions = R"(
_hetseq() {
    local i command form word
    if [[ ${words[1]:t} != hetseq ]]; then
        for ((i = CURRENT - 1; i > 1; i--)); do
            if [[ ${words[i]:t} == hetseq ]]; then
                shift $((i - 1)) words
                ((CURRENT -= i - 1))
                break
            fi
        done
        if ((i == 1)); then
            _default
            return
        fi
    fi
    if ((CURRENT == 2)); then
        _describe -t commands 'hetseq command' _hetseq_commands
        return
    fi
    command=${words[2]}
    for word in "${(@)words[3,CURRENT-1]}"; do
        if [[ " ${_hetseq_forms[$command]} " == *" $word "* ]]; then
            form=$word
            break
        fi
    done
    shift words
    ((CURRENT--))
    _hetseq_arguments
}

if [[ $funcstack[1] == _hetseq ]]; then
    _hetseq "$@"
else
    compdef _hetseq hetseq
    for _hetseq_launcher in mpirun mpiexec srun; do
        [[ -v "_comps[$_hetseq_launcher]" ]] || compdef _hetseq $_hetseq_launcher
    done
fi
)";

// For a text between single quotes.
std::string zsh_quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text)
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

// `_arguments` and `_describe` divide their words at colons, and help ends with a bracket.
std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == ':' || c == '[' || c == ']' || c == '\\')
            result += '\\';
        result += c;
    }
    return result;
}

std::string action_of(const std::string& offered) {
    if (offered == "file")
        return "_files";
    if (offered == "folder")
        return "_files -/";
    if (offered == "configuration")
        return "_files -g \"*.cfg(-.)\"";
    return offered == "any" ? " " : "(" + escaped(offered) + ")";
}

std::string argument_spec(const OptionSpec& option) {
    const std::string help = "[" + escaped(option.help) + "]";
    if (option.is_switch())
        return zsh_quoted("--" + option.name + help);
    return zsh_quoted("--" + option.name + "=" + help + ":" + escaped(option.type) + ":" +
                      action_of(offered_values(option)));
}

std::string description(const std::string& name, const std::string& help) {
    return zsh_quoted(escaped(name) + ":" + help);
}

std::string case_of(const CompletedCall& call) {
    std::string text = "        " + zsh_quoted(call.command + " " + call.form) + ")\n";
    if (!call.forms.empty()) {
        text += "            local -a forms=(";
        for (const CommandForm* form : call.forms)
            text += " " + description(form->word, form->help);
        text += " )\n";
    }
    text += "            _arguments \\\n";
    for (const OptionSpec& option : call.options)
        text += "                " + argument_spec(option) + " \\\n";
    text += "                '--help[show the command and its options]'";
    if (!call.forms.empty())
        text += " \\\n                '1: :{_describe form forms}'";
    else if (!call.form.empty())
        text += " \\\n                '1: :(" + call.form + ")'";
    if (!call.argument.empty() && call.forms.empty())
        text += " \\\n                '*: :" + action_of(call.argument) + "'";
    return text + "\n            ;;\n";
}

}  // namespace

std::string zsh_completion(const Parts& parts) {
    std::string commands, forms, cases;
    for (const CommandEntry& entry : command_table()) {
        const CommandDescription& command = entry.description;
        commands += "    " + description(command.name, command.help) + "\n";
        if (!command.words().empty())
            forms += "    " + command.name + " " + zsh_quoted(join(command.words(), " ")) + "\n";
    }
    for (const CompletedCall& call : completed_calls(option_table(parts)))
        cases += case_of(call);
    return "#compdef hetseq mpirun mpiexec srun\n"
           "# zsh completion of hetseq, made by `hetseq document zsh`\n"
           "typeset -ga _hetseq_commands\n_hetseq_commands=(\n" +
           commands +
           "    'help:show a command and its options'\n    'version:show the version'\n)\n" +
           "typeset -gA _hetseq_forms\n_hetseq_forms=(\n" + forms +
           ")\n\n# Completes behind $command and its $form.\n"
           "_hetseq_arguments() {\n    case \"$command $form\" in\n" +
           cases + "    esac\n}\n" + zsh_functions;
}

}  // namespace hetseq
