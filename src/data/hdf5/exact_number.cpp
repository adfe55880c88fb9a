#include "hetseq/data/hdf5/exact_number.hpp"

#include <array>
#include <charconv>

namespace hetseq {

namespace {

// There is no separator between digits, since users look for a wrong value in the file.
std::string plain_text(double value) {
    std::array<char, 32> text{};
    const auto written =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9);
    return {text.data(), written.ptr};
}

}  // namespace

std::string number_text(const Number& number) {
    if (const auto* integer = std::get_if<std::int64_t>(&number))
        return std::to_string(*integer);
    return plain_text(std::get<double>(number));
}

}  // namespace hetseq
