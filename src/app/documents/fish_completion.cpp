#include <map>

#include "hetseq/util/text.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"

#include "completed_calls.hpp"
#include "documents.hpp"

namespace hetseq {

namespace {

// The functions that need no table. Behind a launcher, the words from the last hetseq on are
// completed as without it.
constexpr const char* fish_functions = R"(
# The words behind the last hetseq before the cursor; fails where there is none.
function __hetseq_words
    set -l found 1
    set -l words
    for word in (commandline -opc)
        if string match -qr '(^|/)hetseq$' -- $word
            set found 0
            set words
        else
            set -a words $word
        end
    end
    test $found -eq 0; and string join \n -- $words
    return $found
end

# "COMMAND FORM" of these words.
function __hetseq_call
    set -l words (__hetseq_words); or return 1
    set -l form
    for word in $words[2..]
        if contains -- "$words[1] $word" $__hetseq_forms
            set form $word
            break
        end
    end
    echo "$words[1] $form"
end

function __hetseq_in
    contains -- (__hetseq_call) $argv
end

function __hetseq_begins
    set -l words (__hetseq_words); and not set -q words[1]
end

# What completes hetseq behind a launcher.
function __hetseq_relay
    set -l words (__hetseq_words); or return 1
    complete -C "hetseq "(string join ' ' -- (string escape -- $words) (commandline -ct))
end

# Folders and *.cfg. fish's own offers what has another suffix behind these.
function __hetseq_configurations
    __fish_complete_suffix .cfg | string match -r '^[^\t]*(?:/|\.cfg)(?=\t|$)'
end

complete -c hetseq -f
complete -c hetseq -l help -d 'show the command and its options'
for launcher in mpirun mpiexec srun
    complete -c $launcher -n __hetseq_words -x -a '(__hetseq_relay)'
end
)";

std::string fish_quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text)
        result += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return result + "'";
}

// How `complete` offers values: -x and -r want one, -x without files.
std::string offer(const std::string& offered) {
    if (offered == "file")
        return " -F";
    if (offered == "folder")
        return " -x -a '(__fish_complete_directories (commandline -ct))'";
    if (offered == "configuration")
        return " -x -a '(__hetseq_configurations)'";
    return offered == "any" ? " -x" : " -x -a " + fish_quoted(offered);
}

std::string line_of(const std::string& condition, const std::string& rest) {
    return "complete -c hetseq -n " + fish_quoted(condition) + rest + "\n";
}

std::string in(const std::vector<std::string>& calls) {
    std::string condition = "__hetseq_in";
    for (const std::string& call : calls)
        condition += " \"" + call + "\"";
    return condition;
}

}  // namespace

std::string fish_completion(const Parts& parts) {
    std::vector<std::string> forms;
    std::string text;
    for (const CommandEntry& entry : command_table()) {
        const CommandDescription& command = entry.description;
        text +=
            line_of("__hetseq_begins", " -a " + command.name + " -d " + fish_quoted(command.help));
        for (const std::string& word : command.words())
            forms.push_back("'" + command.name + " " + word + "'");
    }
    std::map<std::string, std::vector<std::string>> calls;  // by what is offered there
    for (const CompletedCall& call : completed_calls(option_table(parts))) {
        const std::string here = call.command + " " + call.form;
        for (const CommandForm* form : call.forms)
            text += line_of(in({here}), " -a " + form->word + " -d " + fish_quoted(form->help));
        if (!call.argument.empty() && call.forms.empty())
            text += line_of(in({here}), offer(call.argument));
        for (const OptionSpec& option : call.options) {
            const std::string values =
                option.is_switch() ? "" : " -r" + offer(offered_values(option));
            calls[" -l " + option.name + values + " -d " + fish_quoted(option.help)].push_back(
                here);
        }
    }
    for (const auto& [option, places] : calls)
        text += line_of(in(places), option);
    return "# fish completion of hetseq, made by `hetseq document fish`\nset -g __hetseq_forms " +
           join(forms, " ") + "\n" + fish_functions + text;
}

}  // namespace hetseq
