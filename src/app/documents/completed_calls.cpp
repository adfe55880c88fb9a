#include "completed_calls.hpp"

#include "hetseq/util/text.hpp"
#include "hetseq/app/command_table.hpp"

namespace hetseq {

namespace {

// "text|json" lists its values, "PATH" names them.
std::string value_text(const std::string& value) {
    const std::vector<std::string> choices = split(value, '|');
    const bool listed = choices.size() > 1 && value == to_lower(value);
    return listed ? join(choices, " ") : kind_text(value_kind(value));
}

CompletedCall call_of(const CommandDescription& command,
                      const CommandForm& form,
                      const OptionTable& table) {
    CompletedCall call{command.name, form.word, {}, {}, {}};
    if (!form.arguments.empty())
        call.argument = kind_text(value_kind(form.arguments.front().name));
    call.options = form.own_options;
    for (const OptionSpec& spec : table)
        if (form.uses(spec))
            call.options.push_back(spec);
    return call;
}

}  // namespace

std::vector<CompletedCall> completed_calls(const OptionTable& table) {
    std::vector<CompletedCall> calls;
    for (const CommandEntry& command : command_table()) {
        if (!command.description.words().empty()) {
            CompletedCall& any = calls.emplace_back(
                call_of(command.description, union_of(command.description), table));
            for (const CommandForm& form : command.description.forms)
                any.forms.push_back(&form);
        }
        for (const CommandForm& form : command.description.forms)
            calls.push_back(call_of(command.description, form, table));
    }
    return calls;
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

std::string offered_values(const OptionSpec& option) {
    return option.choices.empty() ? value_text(option.type) : join(option.choices, " ");
}

CommandForm union_of(const CommandDescription& command) {
    CommandForm all;
    for (const CommandForm& form : command.forms) {
        for (const OptionSpec& option : form.own_options)
            if (!all.has_own(option.name))
                all.own_options.push_back(option);
        for (const OptionSpec& option : form.options)
            if (!all.uses(option))
                all.options.push_back(option);
    }
    return all;
}

}  // namespace hetseq
