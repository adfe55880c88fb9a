#include "hetseq/options/option.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/name_list.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

template <class T>
Option<T> checked(Option<T> option) {
    try {
        option.read(option.default_value());
    } catch (const BadConfig& error) {
        throw InternalError("the default of --" + option.name() + ": " + error.what());
    }
    return option;
}

std::uint64_t seed_of(const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        option_value::reject(text, "a whole number from 0 to 2^64 - 1");
    return number;
}

// Whole numbers of `least` to `most` digits each.
bool is_number(std::string_view text, std::size_t least, std::size_t most) {
    return text.size() >= least && text.size() <= most &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

// [D-]HH:MM:SS; nothing for any other text.
std::optional<double> duration_of(const std::string& text) {
    if (text.find_first_not_of("0123456789:-") != std::string::npos)
        return std::nullopt;
    const std::size_t dash = text.find('-');
    const std::string days = dash == std::string::npos ? "0" : text.substr(0, dash);
    const std::vector<std::string> parts =
        split(dash == std::string::npos ? text : text.substr(dash + 1), ':');
    if (!is_number(days, 1, 3) || parts.size() != 3 || !is_number(parts[0], 1, 3))
        return std::nullopt;
    for (const std::size_t i : {1, 2})
        if (!is_number(parts[i], 2, 2) || parts[i] > "59")
            return std::nullopt;
    return 86400 * std::stod(days) + 3600 * std::stod(parts[0]) + 60 * std::stod(parts[1]) +
           std::stod(parts[2]);
}

double seconds_of(const std::string& text) {
    if (text.empty())
        return 0;
    const std::optional<double> seconds = duration_of(text);
    if (!seconds)
        option_value::reject(text, "a time such as 23:55:00 or 1-12:00:00");
    return *seconds;
}

}  // namespace

Option<double> number_option(const std::string& name,
                             const std::string& default_value,
                             const std::string& help,
                             double minimum,
                             double maximum) {
    const auto read = [minimum, maximum](const std::string& text) {
        return option_value::number(text, minimum, maximum);
    };
    return checked(Option<double>({name, "X", default_value, help}, read));
}

Option<double> positive_number_option(const std::string& name,
                                      const std::string& default_value,
                                      const std::string& help) {
    return checked(Option<double>({name, "X", default_value, help}, option_value::positive));
}

Option<double> fraction_option(const std::string& name,
                               const std::string& default_value,
                               const std::string& help) {
    return checked(Option<double>({name, "X", default_value, help}, option_value::fraction));
}

Option<std::optional<double>> probability_option(const std::string& name, const std::string& help) {
    return {{name, "P", "", help}, [](const std::string& text) -> std::optional<double> {
                if (text.empty())
                    return std::nullopt;
                return option_value::fraction(text);
            }};
}

Option<std::int64_t> whole_number_option(const std::string& name,
                                         const std::string& default_value,
                                         const std::string& help,
                                         std::int64_t minimum,
                                         std::int64_t maximum) {
    const auto read = [minimum, maximum](const std::string& text) {
        return option_value::whole_number(text, minimum, maximum);
    };
    return checked(Option<std::int64_t>({name, "N", default_value, help}, read));
}

Option<std::uint64_t> seed_option(const std::string& help) {
    return {{"seed", "N", "1", help}, seed_of};
}

Option<std::string> text_option(const std::string& name,
                                const std::string& type,
                                const std::string& default_value,
                                const std::string& help) {
    return {{name, type, default_value, help}, [](const std::string& text) { return text; }};
}

Option<std::vector<std::string>> files_option(const std::string& name, const std::string& help) {
    return {{name, "FILE[,FILE...]", "", help}, split_file_names};
}

Option<std::string> choice_option(const std::string& name,
                                  const std::vector<std::string>& choices,
                                  const std::string& default_value,
                                  const std::string& help) {
    const auto read = [choices](const std::string& text) {
        return option_value::choice(text, choices);
    };
    return checked(Option<std::string>({name, "NAME", default_value, help, choices}, read));
}

Option<bool> switch_option(const std::string& name, const std::string& help) {
    return {{name, "", "false", help}, option_value::is_on};
}

Option<bool> json_option() {
    return switch_option("json", "print results as JSON").of_command();
}

Option<double> duration_option(const std::string& name, const std::string& help) {
    return {{name, "TIME", "", help}, seconds_of};
}

}  // namespace hetseq
