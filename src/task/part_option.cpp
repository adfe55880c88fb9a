#include "hetseq/task/part_option.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

[[noreturn]] void reject(const std::string& text, const std::string& expected) {
    throw BadConfig("'" + text + "' is not " + expected);
}

// Nothing where `text` is more or less than one number.
template <class T>
bool parse(const std::string& text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

template <class T>
PartOption<T> checked(PartOption<T> option) {
    try {
        option.read(option.default_value());
    } catch (const BadConfig& error) {
        throw InternalError("the default of --" + option.name() + ": " + error.what());
    }
    return option;
}

}  // namespace

PartOption<double> number_option(const std::string& name,
                                 const std::string& default_value,
                                 const std::string& help,
                                 double minimum,
                                 double maximum) {
    const std::string up_to = maximum < std::numeric_limits<double>::max()
                                  ? " to " + format_number(maximum)
                                  : std::string(" up");
    const std::string expected = "a number from " + format_number(minimum) + up_to;
    const auto read = [minimum, maximum, expected](const std::string& text) {
        double value = 0;
        if (!parse(text, value) || !std::isfinite(value) || value < minimum || value > maximum)
            reject(text, expected);
        return value;
    };
    return checked(PartOption<double>({name, "X", default_value, help, {}, {}}, read));
}

PartOption<std::int64_t> whole_number_option(const std::string& name,
                                             const std::string& default_value,
                                             const std::string& help,
                                             std::int64_t minimum,
                                             std::int64_t maximum) {
    const auto read = [minimum, maximum](const std::string& text) {
        std::int64_t value = 0;
        if (!parse(text, value) || value < minimum || value > maximum)
            reject(text,
                   "a whole number from " + std::to_string(minimum) + " to " +
                       std::to_string(maximum));
        return value;
    };
    return checked(PartOption<std::int64_t>({name, "N", default_value, help, {}, {}}, read));
}

PartOption<std::string> text_option(const std::string& name,
                                    const std::string& type,
                                    const std::string& default_value,
                                    const std::string& help) {
    return {{name, type, default_value, help, {}, {}},
            [](const std::string& text) { return text; }};
}

PartOption<std::string> choice_option(const std::string& name,
                                      const std::vector<std::string>& choices,
                                      const std::string& default_value,
                                      const std::string& help) {
    const auto read = [choices](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) == choices.end())
            reject(text, "one of " + join(choices, ", "));
        return text;
    };
    return checked(PartOption<std::string>({name, "NAME", default_value, help, choices, {}}, read));
}

PartOption<bool> switch_option(const std::string& name, const std::string& help) {
    const auto read = [](const std::string& text) {
        const bool is_on = text == "true" || text == "1" || text == "yes";
        if (!is_on && text != "false" && text != "0" && text != "no")
            reject(text, "true or false");
        return is_on;
    };
    return {{name, "", "false", help, {}, {}}, read};
}

}  // namespace hetseq
