#include "hetseq/app/option_parser.hpp"

#include <algorithm>
#include <fstream>

#include <boost/program_options.hpp>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "command_words.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

// What the library calls words that are no options; no user writes it.
constexpr const char* positional_word = " word";

po::options_description description() {
    po::options_description description;
    for (const OptionSpec& spec : option_table()) {
        auto* value = po::value<std::string>();
        if (spec.type.empty())
            value->implicit_value("true")->zero_tokens();
        description.add_options()(spec.name.c_str(), value, spec.help.c_str());
    }
    return description;
}

// In a file a switch has a value as well.
po::options_description file_description() {
    po::options_description description;
    for (const OptionSpec& spec : option_table())
        description.add_options()(spec.name.c_str(), po::value<std::string>());
    return description;
}

std::vector<std::string> option_names() {
    std::vector<std::string> names;
    for (const OptionSpec& spec : option_table())
        names.push_back("--" + spec.name);
    return names;
}

std::string nearest_option(std::string name) {
    while (!name.empty() && name.front() == '-')
        name.erase(name.begin());
    const std::string nearest = nearest_name("--" + name, option_names());
    return nearest.empty() ? "see hetseq train --help" : "did you mean " + nearest + "?";
}

OptionValues to_values(const po::basic_parsed_options<char>& parsed) {
    OptionValues values;
    for (const auto& option : parsed.options)
        if (option.position_key == -1)
            values[option.string_key] = option.value.empty() ? "true" : option.value.front();
    return values;
}

}  // namespace

ParsedOptions parse_command_line(const std::vector<std::string>& words) {
    try {
        auto known = description();
        known.add_options()(positional_word, po::value<std::vector<std::string>>());
        po::positional_options_description positional;
        const auto parsed = po::command_line_parser(words)
                                .options(known)
                                .positional(positional.add(positional_word, -1))
                                .style(po::command_line_style::allow_long |
                                       po::command_line_style::long_allow_adjacent |
                                       po::command_line_style::long_allow_next)
                                .run();
        ParsedOptions result{to_values(parsed), {}};
        for (const auto& option : parsed.options)
            if (option.position_key != -1)
                result.positionals.push_back(option.value.front());
        return result;
    } catch (const po::unknown_option& error) {
        throw BadUsage("unknown option '" + error.get_option_name() + "'",
                       "",
                       nearest_option(error.get_option_name()));
    } catch (const po::error& error) {
        throw BadUsage(reason_of(error, words), "", "see hetseq train --help");
    }
}

OptionValues parse_config_file(const std::string& path) {
    std::ifstream file(path);
    if (!file)
        throw MissingInput("cannot read the configuration " + path,
                           "no such file, or not readable",
                           "check the path");
    try {
        return to_values(po::parse_config_file(file, file_description()));
    } catch (const po::unknown_option& error) {
        throw BadConfig(path + ": unknown option '" + error.get_option_name() + "'",
                        "",
                        nearest_option(error.get_option_name()));
    } catch (const po::invalid_syntax& error) {
        throw BadConfig(path + ": cannot read the line '" + error.tokens() + "'",
                        "a line is 'name = value', a comment begins with #");
    } catch (const po::error& error) {
        throw BadConfig(path + ": " + error.what(), "", "give each option once");
    }
}

GivenOptions parse_with_config(const std::vector<std::string>& words) {
    const ParsedOptions parsed = parse_command_line(words);
    if (parsed.positionals.empty())
        return {parsed.values, {}};
    if (parsed.positionals.size() > 1)
        throw BadUsage(
            "more than one configuration: " + join(parsed.positionals, ", "), "", "give one");
    return {parsed.values, parse_config_file(parsed.positionals.front())};
}

std::string config_text(const OptionValues& values) {
    std::string text;
    std::string group;
    for (const OptionSpec& spec : option_table()) {
        if (spec.scope == OptionScope::command)
            continue;
        if (spec.group != group)
            text += (group.empty() ? "# " : "\n# ") + spec.group + "\n";
        group = spec.group;
        const std::string& value = values.at(spec.name);
        text += (value.empty() ? "# " : "") + spec.name + " = " + value + "\n";
    }
    return text;
}

std::string options_help() {
    std::string text;
    std::string group;
    for (const OptionSpec& spec : option_table()) {
        if (spec.group != group)
            text += "\n" + spec.group + ":\n";
        group = spec.group;
        std::string head = "  --" + spec.name + (spec.type.empty() ? "" : " " + spec.type);
        head.resize(std::max<std::size_t>(head.size() + 1, 30), ' ');
        const bool shows_default = !spec.type.empty() && !spec.default_value.empty();
        text += head + spec.help + (shows_default ? " [" + spec.default_value + "]" : "") + "\n";
    }
    return text;
}

}  // namespace hetseq
