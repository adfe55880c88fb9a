#include "hetseq/app/command_line/command_description.hpp"

#include <algorithm>

#include "hetseq/util/text.hpp"

namespace hetseq {

const CommandOption* CommandForm::own_option(const std::string& name) const {
    for (const CommandOption& option : own_options)
        if (option.name == name)
            return &option;
    return nullptr;
}

bool CommandForm::uses(const std::string& option) const {
    return std::find(options.begin(), options.end(), option) != options.end();
}

bool CommandForm::uses(const OptionSpec& spec) const {
    if (spec.owners.empty())
        return uses(spec.name);
    return std::any_of(spec.owners.begin(), spec.owners.end(), [&](const OptionOwner& owner) {
        return uses(owner.option);
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

std::vector<std::string> options_but(const std::vector<std::string>& others) {
    std::vector<std::string> names;
    for (const OptionSpec& spec : option_table())
        if (std::find(others.begin(), others.end(), spec.name) == others.end())
            names.push_back(spec.name);
    return names;
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
