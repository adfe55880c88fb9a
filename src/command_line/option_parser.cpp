#include "hetseq/command_line/option_parser.hpp"

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_names.hpp"

#include "repeated_options.hpp"

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

// Tells whether the text is the config.cfg of a task in Python that a script made.
bool is_of_script(const std::string& text, const OptionTable& table) {
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line))
        if (line == "task = python")
            return find_option(table, "task-file") == nullptr;
    return false;
}

std::string what_to_do(const std::string& unknown, const OptionTable& table) {
    const std::string meant = meant_option(unknown, names_of(table));
    return meant.empty() ? "hetseq train --help lists the options" : meant;
}

OptionValues to_values(const po::basic_parsed_options<char>& parsed, const std::string& path) {
    GivenInOrder given;
    for (const auto& option : parsed.options)
        if (!option.unregistered)
            given.emplace_back(option.string_key,
                               option.value.empty() ? "true" : option.value.front());
    return last_values(given, "in " + path);
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

std::string text_of(const std::string& path) {
    std::error_code unknown;
    const std::filesystem::path own = std::filesystem::path(path) / "config.cfg";
    if (std::filesystem::is_directory(path, unknown))
        throw MissingInput(
            path + " is a folder",
            "a file of options is needed",
            std::filesystem::exists(own, unknown) ? "give " + own.string() : "name the file");
    const std::optional<std::string> text = read_text_once(path);
    if (!text)
        throw MissingInput("cannot read the configuration " + path,
                           "it does not exist or cannot be read",
                           "check the path");
    return config_lines(*text, path);
}

// The library would read "[train]" as the beginning of all names that follow.
void check_no_section(const std::string& path, const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::vector<std::string> words = split(line.substr(0, line.find('#')), '\n');
        if (!words.empty() && words.front().starts_with('[') && words.front().ends_with(']'))
            throw BadConfig(path + ", line " + std::to_string(number) + ": '" + words.front() +
                                "' begins a section",
                            "a configuration has none, and its options are for all commands",
                            "leave that line out");
    }
}

// "lr 0.1 (0.5), max-epoch 3 (20)": what differs, with the file's value behind.
std::string replaced(const GivenOptions& given) {
    std::vector<std::string> options;
    for (const auto& [name, value] : given.line)
        if (const auto other = given.file.find(name);
            other != given.file.end() && other->second != value)
            options.push_back(name + " " + value + " (" + other->second + ")");
    return join(options, ", ");
}

enum class Unknown { refused, left_out };

OptionValues parsed_file(const std::string& path, const OptionTable& table, Unknown unknown) {
    const std::string text = text_of(path);
    check_no_section(path, text);
    try {
        std::istringstream file(text);
        return to_values(
            po::parse_config_file(file, description(table), unknown == Unknown::left_out), path);
    } catch (const po::unknown_option& error) {
        if (is_of_script(text, table))
            throw BadConfig(path + " is of a task in Python that a script made",
                            "it names no file that holds the task",
                            "name one: --task-file FILE.py:NAME, where NAME is a class or a task");
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

}  // namespace

OptionValues parse_config_file(const std::string& path, const OptionTable& table) {
    return parsed_file(path, table, Unknown::refused);
}

OptionValues parse_known_options(const std::string& path, const OptionTable& table) {
    return parsed_file(path, table, Unknown::left_out);
}

GivenOptions given_options(const CommandWords& words, const OptionTable& table) {
    if (words.arguments.empty())
        return {words.options, {}};
    GivenOptions given{words.options, parse_config_file(words.arguments.front(), table)};
    if (const std::string options = replaced(given); !options.empty())
        log::info("the command line replaces options of " + words.arguments.front() + ": " +
                  options);
    return given;
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
