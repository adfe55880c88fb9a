#include "hetseq/util/option_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq::option_value {

namespace {

// Nothing where `text` is more or less than one number.
template <class T>
bool parse(const std::string& text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void reject(const std::string& text, const std::string& expected) {
    throw BadConfig("'" + text + "' is not " + expected);
}

std::int64_t whole_number(const std::string& text, std::int64_t minimum, std::int64_t maximum) {
    std::int64_t value = 0;
    if (!parse(text, value) || value < minimum || value > maximum)
        reject(text,
               "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
    return value;
}

double number(const std::string& text, double minimum, double maximum) {
    double value = 0;
    if (!parse(text, value) || !std::isfinite(value) || value < minimum || value > maximum)
        reject(text,
               "a number from " + format_number(minimum) +
                   (maximum < std::numeric_limits<double>::max() ? " to " + format_number(maximum)
                                                                 : " up"));
    return value;
}

double positive(const std::string& text) {
    const double value = number(text);
    if (value == 0)
        reject(text, "a number above 0");
    return value;
}

double fraction(const std::string& text) {
    const double value = number(text, 0, 1);
    if (value == 1)
        reject(text, "a number from 0 to below 1");
    return value;
}

bool is_on(const std::string& text) {
    if (text == "true" || text == "1" || text == "yes")
        return true;
    if (text == "false" || text == "0" || text == "no")
        return false;
    reject(text, "true or false");
}

std::string choice(const std::string& text, const std::vector<std::string>& allowed) {
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
        reject(text, "one of " + join(allowed, ", "));
    return text;
}

}  // namespace hetseq::option_value
