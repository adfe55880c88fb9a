#include "hetseq/app/command_line/option_parser.hpp"

#include <optional>
#include <sstream>

#include <boost/program_options.hpp>

#include "hetseq/util/error.hpp"
#include "hetseq/util/file_text.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/util/regular_file.hpp"
#include "hetseq/app/command_line/option_names.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

// A switch has a value in a file as well.
po::options_description description(const OptionTable& table) {
    po::options_description description;
    for (const OptionSpec& spec : table)
        description.add_options()(spec.name.c_str(), po::value<std::string>());
    return description;
}

std::string what_to_do(const std::string& unknown, const OptionTable& table) {
    std::vector<std::string> names;
    for (const OptionSpec& spec : table)
        names.push_back(spec.name);
    const std::string meant = meant_option(unknown, names);
    return meant.empty() ? "hetseq train --help lists the options" : meant;
}

OptionValues to_values(const po::basic_parsed_options<char>& parsed) {
    OptionValues values;
    for (const auto& option : parsed.options)
        values[option.string_key] = option.value.empty() ? "true" : option.value.front();
    return values;
}

// Without a byte order mark, and with line feeds alone between its lines.
std::string config_lines(std::string_view bytes, const std::string& path) {
    if (const auto fault = encoding_fault(bytes, path))
        throw BadConfig(fault->problem, fault->why, fault->what_to_do);
    bytes = without_byte_order_mark(bytes);
    std::string lines;
    for (int number = 1; !bytes.empty(); ++number) {
        const std::string_view line = take_line(bytes);
        if (holds_carriage_return(line)) {
            const Explanation fault =
                carriage_return_fault(path + ", line " + std::to_string(number));
            throw BadConfig(fault.problem, fault.why, fault.what_to_do);
        }
        lines.append(line).append("\n");
    }
    return lines;
}

}  // namespace

OptionValues parse_config_file(const std::string& path, const OptionTable& table) {
    check_text_file(path);
    const std::optional<std::string> text = read_file_text(path);
    if (!text)
        throw MissingInput("cannot read the configuration " + path,
                           "it does not exist or cannot be read",
                           "check the path");
    std::istringstream file(config_lines(*text, path));
    try {
        return to_values(po::parse_config_file(file, description(table)));
    } catch (const po::unknown_option& error) {
        throw BadConfig(path + ": unknown option '" + error.get_option_name() + "'",
                        "",
                        what_to_do(error.get_option_name(), table));
    } catch (const po::invalid_syntax& error) {
        throw BadConfig(path + ": cannot read the line '" + error.tokens() + "'",
                        "a line is 'name = value', a comment begins with #");
    } catch (const po::error& error) {
        throw BadConfig(path + ": " + error.what(), "", "give each option once");
    }
}

GivenOptions given_options(const CommandWords& words, const OptionTable& table) {
    if (words.arguments.empty())
        return {words.options, {}};
    return {words.options, parse_config_file(words.arguments.front(), table)};
}

std::string config_text(const OptionValues& values, const OptionTable& table) {
    std::string text;
    std::string group;
    for (const OptionSpec& spec : table) {
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

}  // namespace hetseq
