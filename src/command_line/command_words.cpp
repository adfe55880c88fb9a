#include "hetseq/command_line/command_words.hpp"

#include <algorithm>
#include <map>

#include <boost/program_options.hpp>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/command_usage.hpp"
#include "hetseq/command_line/option_names.hpp"

#include "repeated_options.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

// The library's name for words that are not options. No user can write it.
constexpr const char* positional_word = " word";

using Types = std::map<std::string, std::string>;  // by option: "N"; empty: a switch

// The options of all forms, since the form is known only after parsing.
Types all_options(const CommandDescription& command, const OptionTable& table) {
    Types types;
    for (const CommandForm& form : command.forms) {
        for (const OptionSpec& option : form.own_options)
            types.emplace(option.name, option.type);
        for (const OptionSpec& spec : table)
            if (form.uses(spec))
                types.emplace(spec.name, spec.type);
    }
    return types;
}

std::vector<std::string> names_of(const Types& types) {
    std::vector<std::string> names;
    for (const auto& [name, type] : types)
        names.push_back(name);
    return names;
}

std::string help_of(const CommandDescription& command) {
    return "hetseq " + command.name + " --help lists its options";
}

// `given` as it was written: "--lr=0.5".
[[noreturn]] void refuse_option(const CommandDescription& command,
                                const std::string& given,
                                const std::vector<std::string>& known,
                                const OptionTable& table) {
    const std::string option = given.substr(0, given.find('='));
    const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    const bool is_in_table = find_option(table, name) != nullptr;
    if (is_in_table && std::find(known.begin(), known.end(), name) == known.end())
        throw BadConfig(command.name + " does not use --" + name, "", help_of(command));
    const std::string meant = meant_option(option, known);
    throw BadConfig(
        "unknown option '" + option + "'", "", meant.empty() ? help_of(command) : meant);
}

// Why Boost refuses `words`. Boost's own text is used only where it ends: Boost also replaces
// placeholders (%value%) in the text that it has inserted, and may go on forever.
std::string reason_of(const po::error& error, const std::vector<std::string>& words) {
    for (const std::string& word : words)
        if (word.find('%') != std::string::npos)
            return "cannot read the options in '" + join(words, " ") + "'";
    return error.what();
}

struct ToldApart {
    OptionValues options;
    std::vector<std::string> positionals;
};

ToldApart tell_apart(const CommandDescription& command,
                     const std::vector<std::string>& words,
                     const OptionTable& table) {
    const Types types = all_options(command, table);
    po::options_description known;
    for (const auto& [name, type] : types) {
        auto* value = po::value<std::string>();
        if (type.empty())
            value->implicit_value("true")->zero_tokens();
        known.add_options()(name.c_str(), value, "");
    }
    known.add_options()(positional_word, po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add(positional_word, -1);
    try {
        const auto parsed = po::command_line_parser(words)
                                .options(known)
                                .positional(positional)
                                .style(po::command_line_style::allow_long |
                                       po::command_line_style::long_allow_adjacent |
                                       po::command_line_style::long_allow_next)
                                .run();
        ToldApart result;
        GivenInOrder options;
        for (const auto& option : parsed.options) {
            const std::string value = option.value.empty() ? "true" : option.value.front();
            if (option.position_key == -1)
                options.emplace_back(option.string_key, value);
            else if (value.size() > 1 && value.front() == '-')
                refuse_option(command, value, names_of(types), table);
            else
                result.positionals.push_back(value);
        }
        result.options = last_values(options, "on the command line");
        return result;
    } catch (const po::unknown_option& error) {
        refuse_option(command, error.get_option_name(), names_of(types), table);
    } catch (const po::error& error) {
        throw BadConfig(reason_of(error, words), "", help_of(command));
    }
}

const CommandForm& take_form(const CommandDescription& command,
                             std::vector<std::string>& positionals) {
    const std::vector<std::string> words = command.words();
    if (words.empty())
        return command.forms.front();
    if (positionals.empty())
        throw BadUsage("hetseq " + command.name + " needs one of " + join(words, ", "),
                       "",
                       "hetseq " + command.name + " --help tells more");
    const CommandForm* form = command.form(positionals.front());
    if (form == nullptr)
        throw BadUsage("hetseq " + command.name + " has no '" + positionals.front() + "'",
                       "",
                       suggestion(positionals.front(), words));
    positionals.erase(positionals.begin());
    return *form;
}

void check_arguments(const CommandDescription& command,
                     const CommandForm& form,
                     const std::vector<std::string>& given) {
    using Count = CommandArgument::Count;
    std::size_t needed = 0;
    bool has_many = false;
    for (const CommandArgument& argument : form.arguments) {
        has_many = has_many || argument.count == Count::many;
        if (argument.count == Count::optional)
            continue;
        if (given.size() <= needed++)
            throw BadUsage(argument.name + " is missing", argument.help, usage_of(command, form));
    }
    if (!has_many && given.size() > form.arguments.size())
        throw BadUsage("'" + given[form.arguments.size()] + "' is one word too many",
                       "",
                       usage_of(command, form));
}

void sort_option(const CommandDescription& command,
                 const CommandForm& form,
                 const std::string& name,
                 const std::string& value,
                 const OptionTable& table,
                 CommandWords& words) {
    const OptionSpec* const spec = find_option(table, name);
    if (form.has_own(name))
        words.own[name] = value;
    else if (spec != nullptr && form.uses(*spec))
        words.options[name] = value;
    else
        throw BadConfig(command.name + " " + form.word + " does not use --" + name,
                        "",
                        usage_of(command, form));
}

}  // namespace

CommandWords parse_command_words(const CommandDescription& command,
                                 const std::vector<std::string>& words,
                                 const OptionTable& table) {
    ToldApart given = tell_apart(command, words, table);
    const CommandForm& form = take_form(command, given.positionals);
    check_arguments(command, form, given.positionals);
    CommandWords result{form.word, std::move(given.positionals), {}, {}};
    for (const OptionSpec& option : form.own_options)
        if (!option.is_required)
            result.own[option.name] = option.default_value;
    for (const auto& [name, value] : given.options)
        sort_option(command, form, name, value, table, result);
    for (const OptionSpec& option : form.own_options)
        if (result.own.count(option.name) == 0)
            throw BadConfig(
                "--" + option.name + " is missing", option.help, usage_of(command, form));
    return result;
}

}  // namespace hetseq
