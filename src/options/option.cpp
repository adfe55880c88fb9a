#include "hetseq/options/option.hpp"

#include <charconv>
#include <regex>

#include "hetseq/util/error.hpp"
#include "hetseq/util/name_list.hpp"
#include "hetseq/util/option_value.hpp"

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

double seconds_of(const std::string& text) {
    static const std::regex form(R"((?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d))");
    std::smatch parts;
    if (text.empty())
        return 0;
    if (!std::regex_match(text, parts, form))
        option_value::reject(text, "a time such as 23:55:00 or 1-12:00:00");
    const auto part = [&](std::size_t i) {
        return parts[i].matched ? std::stod(parts[i].str()) : 0.0;
    };
    return 86400 * part(1) + 3600 * part(2) + 60 * part(3) + part(4);
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
