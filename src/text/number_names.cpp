#include "hetseq/text/number_names.hpp"

#include <array>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t hundred = 100;
constexpr std::int64_t thousand = 1'000;
constexpr std::int64_t million = 1'000'000;

using Names = std::array<const char*, 20>;
using Tens = std::array<const char*, 10>;

constexpr Names english_below_twenty{"zero",    "one",     "two",       "three",    "four",
                                     "five",    "six",     "seven",     "eight",    "nine",
                                     "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                     "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr Tens english_tens{
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};

constexpr Names german_below_twenty{"null",     "eins",     "zwei",     "drei",     "vier",
                                    "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                    "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                    "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr Tens german_tens{
    "", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

std::size_t place(std::int64_t number) {
    return static_cast<std::size_t>(number);
}

std::string english_below_hundred(std::int64_t number) {
    if (number < 20)
        return english_below_twenty[place(number)];
    const std::string tens = english_tens[place(number / 10)];
    return number % 10 == 0 ? tens : tens + "-" + english_below_twenty[place(number % 10)];
}

std::string english_below_thousand(std::int64_t number) {
    if (number < hundred)
        return english_below_hundred(number);
    const std::string hundreds = english_below_hundred(number / hundred) + " hundred";
    return number % hundred == 0 ? hundreds
                                 : hundreds + " and " + english_below_hundred(number % hundred);
}

// What one is called where a word follows: "einhundert", not "einshundert".
enum class One { alone, before_a_word };

std::string german_below_hundred(std::int64_t number, One one) {
    if (number == 1 && one == One::before_a_word)
        return "ein";
    if (number < 20)
        return german_below_twenty[place(number)];
    const std::string tens = german_tens[place(number / 10)];
    return number % 10 == 0 ? tens
                            : german_below_hundred(number % 10, One::before_a_word) + "und" + tens;
}

std::string german_below_thousand(std::int64_t number, One one) {
    if (number < hundred)
        return german_below_hundred(number, one);
    const std::string hundreds =
        german_below_hundred(number / hundred, One::before_a_word) + "hundert";
    return number % hundred == 0 ? hundreds
                                 : hundreds + german_below_hundred(number % hundred, one);
}

std::string german_millions(std::int64_t number) {
    return number == 1 ? "eine Million" : german_below_hundred(number, One::alone) + " Millionen";
}

}  // namespace

std::string english_number(std::int64_t number) {
    HETSEQ_ASSERT(number >= 0 && number <= most_named_number);
    if (number < thousand)
        return english_below_thousand(number);
    const std::int64_t unit = number < million ? thousand : million;
    const std::string name = number < million ? " thousand" : " million";
    const std::string first = english_below_thousand(number / unit) + name;
    const std::int64_t rest = number % unit;
    if (rest == 0)
        return first;
    return first + (rest < hundred ? " and " : " ") + english_number(rest);
}

std::string german_number(std::int64_t number) {
    HETSEQ_ASSERT(number >= 0 && number <= most_named_number);
    if (number < thousand)
        return german_below_thousand(number, One::alone);
    const std::int64_t rest = number % million;
    if (number >= million)
        return german_millions(number / million) + (rest == 0 ? "" : " " + german_number(rest));
    const std::string thousands =
        german_below_thousand(number / thousand, One::before_a_word) + "tausend";
    return number % thousand == 0
               ? thousands
               : thousands + german_below_thousand(number % thousand, One::alone);
}

}  // namespace hetseq
