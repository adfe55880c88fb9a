#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// An option's value from its text. All throw BadConfig that says what was expected.
namespace hetseq::option_value {

std::int64_t whole_number(const std::string& text, std::int64_t minimum, std::int64_t maximum);
/// Finite.
double number(const std::string& text,
              double minimum = 0,
              double maximum = std::numeric_limits<double>::max());
/// Greater than 0.
double positive(const std::string& text);
/// From 0 to below 1.
double fraction(const std::string& text);
bool is_on(const std::string& text);
/// `text` itself.
std::string choice(const std::string& text, const std::vector<std::string>& allowed);

[[noreturn]] void reject(const std::string& text, const std::string& expected);

}  // namespace hetseq::option_value
