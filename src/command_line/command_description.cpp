#include "hetseq/command_line/command_description.hpp"

#include <algorithm>

#include "hetseq/util/text.hpp"

namespace hetseq {

bool CommandForm::has_own(const std::string& name) const {
    return find_option(own_options, name) != nullptr;
}

bool CommandForm::uses(const OptionSpec& spec) const {
    if (spec.owners.empty())
        return find_option(options, spec.name) != nullptr;
    return std::any_of(spec.owners.begin(), spec.owners.end(), [&](const OptionOwner& owner) {
        return find_option(options, owner.option) != nullptr;
    });
}

const CommandForm* CommandDescription::form(const std::string& word) const {
    for (const CommandForm& form : forms)
        if (form.word == word)
            return &form;
    return nullptr;
}

std::vector<std::string> CommandDescription::words() const {
    std::vector<std::string> words;
    for (const CommandForm& form : forms)
        if (!form.word.empty())
            words.push_back(form.word);
    return words;
}

std::string explained(const OptionSpec& option) {
    const auto is_named = [&](const std::string& choice) {
        return option.help.find(choice) != std::string::npos;
    };
    if (std::all_of(option.choices.begin(), option.choices.end(), is_named) ||
        option.type == join(option.choices, "|"))
        return option.help;
    return option.help + ": " + join(option.choices, ", ");
}

ValueKind value_kind(const std::string& name) {
    if (name.ends_with(".cfg"))
        return ValueKind::configuration;
    for (const std::string& part : split(name.substr(0, name.find('[')), '|')) {
        if (part == "DIR" || part == "RUN")
            return ValueKind::folder;
        if (part == "PATH" || part == "FILE" || part.ends_with(".json") || part == "IDX" ||
            part == "REFERENCE")
            return ValueKind::file;
    }
    return ValueKind::any;
}

}  // namespace hetseq
