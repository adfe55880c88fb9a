#include "option_setters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/signal_inbox.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq::option_setters {

namespace {

[[noreturn]] void reject(const std::string& text, const std::string& expected) {
    throw BadConfig("'" + text + "' is not " + expected);
}

std::int64_t parse_integer(const std::string& text, std::int64_t minimum, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < minimum || value > most)
        reject(text,
               "a whole number from " + std::to_string(minimum) + " to " + std::to_string(most));
    return value;
}

double parse_number(const std::string& text, double minimum, double maximum) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || !std::isfinite(value) || value < minimum || value > maximum)
        reject(text,
               "a number from " + format_number(minimum) +
                   (maximum < std::numeric_limits<double>::max() ? " to " + format_number(maximum)
                                                                 : " up"));
    return value;
}

double parse_below_one(const std::string& text) {
    const double value = parse_number(text, 0, 1);
    if (value == 1)
        reject(text, "a number from 0 to below 1");
    return value;
}

bool parse_switch(const std::string& text) {
    if (text == "true" || text == "1" || text == "yes")
        return true;
    if (text == "false" || text == "0" || text == "no")
        return false;
    reject(text, "true or false");
}

// Sets one of several values by its name.
template <class T>
Setter named_value(Place<T> place, const std::vector<std::pair<std::string, T>>& values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values)
        names.push_back(name);
    const auto set = [place, values, names](Options& options, const std::string& text) {
        const auto found = std::find(names.begin(), names.end(), text);
        if (found == names.end())
            reject(text, "one of " + join(names, ", "));
        place(options) = values[static_cast<std::size_t>(found - names.begin())].second;
    };
    return {set, names};
}

}  // namespace

Setter text(Place<std::string> place) {
    return [place](Options& options, const std::string& value) { place(options) = value; };
}

Setter choice(Place<std::string> place, std::vector<std::string> allowed) {
    const auto set = [place, allowed](Options& options, const std::string& value) {
        if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
            reject(value, "one of " + join(allowed, ", "));
        place(options) = value;
    };
    return {set, allowed};
}

// Products of two such numbers stay far from overflowing.
Setter integer(Place<std::int64_t> place, std::int64_t minimum, std::int64_t maximum) {
    return [place, minimum, maximum](Options& options, const std::string& value) {
        place(options) = parse_integer(value, minimum, maximum);
    };
}

Setter seed(Place<std::uint64_t> place) {
    return [place](Options& options, const std::string& value) {
        std::uint64_t number = 0;
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || end != value.data() + value.size())
            reject(value, "a whole number from 0 to 2^64 - 1");
        place(options) = number;
    };
}

Setter number(Place<double> place, double minimum, double maximum) {
    return [place, minimum, maximum](Options& options, const std::string& value) {
        place(options) = parse_number(value, minimum, maximum);
    };
}

Setter probability(Place<std::optional<double>> place) {
    return [place](Options& options, const std::string& value) {
        if (value.empty())
            return;
        place(options) = parse_below_one(value);
    };
}

Setter positive(Place<double> place) {
    return [place](Options& options, const std::string& value) {
        const double number = parse_number(value, 0, std::numeric_limits<double>::max());
        if (number == 0)
            reject(value, "a number above 0");
        place(options) = number;
    };
}

Setter fraction(Place<double> place) {
    return [place](Options& options, const std::string& value) {
        place(options) = parse_below_one(value);
    };
}

Setter flag(Place<bool> place) {
    return [place](Options& options, const std::string& value) {
        place(options) = parse_switch(value);
    };
}

Setter duration(Place<double> place) {
    return [place](Options& options, const std::string& value) {
        static const std::regex form(R"((?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d))");
        std::smatch parts;
        if (value.empty())
            return;
        if (!std::regex_match(value, parts, form))
            reject(value, "a time such as 23:55:00 or 1-12:00:00");
        const auto part = [&](std::size_t i) {
            return parts[i].matched ? std::stod(parts[i].str()) : 0.0;
        };
        place(options) = 86400 * part(1) + 3600 * part(2) + 60 * part(3) + part(4);
    };
}

Setter signals(Place<std::set<int>> place) {
    return [place](Options& options, const std::string& value) {
        place(options) = parse_signals(value);
    };
}

Setter best_by(Place<BestBy> place) {
    return [place](Options& options, const std::string& value) {
        place(options) = parse_best_by(value);
    };
}

void set_betas(Options& options, const std::string& value) {
    const auto betas = split(value, ',');
    if (betas.size() != 2)
        reject(value, "two numbers with a comma between, such as 0.9,0.999");
    options.parts.optimizer.beta1 = parse_below_one(betas[0]);
    options.parts.optimizer.beta2 = parse_below_one(betas[1]);
}

Setter set_balance() {
    const auto set = [](Options& options, const std::string& value) {
        const std::string prefix = "file:";
        const bool is_file = value.rfind(prefix, 0) == 0 && value.size() > prefix.size();
        if (!is_file && value != "auto" && value != "declared" && value != "equal")
            reject(value, "one of auto, declared, equal, file:PATH");
        options.balance = is_file ? "file" : value;
        options.plan_file = is_file ? value.substr(prefix.size()) : "";
    };
    return {set, {"auto", "declared", "equal", "file:"}};
}

Setter set_device() {
    return named_value<DeviceChoice>([](Options & options) -> auto& { return options.device; },
                                     {{"auto", DeviceChoice::automatic},
                                      {"cpu", DeviceChoice::cpu},
                                      {"cuda", DeviceChoice::cuda}});
}

Setter set_io() {
    return named_value<IoMode>([](Options & options) -> auto& { return options.corpus.io; },
                               {{"collective", IoMode::collective},
                                {"independent", IoMode::independent},
                                {"serial", IoMode::serial}});
}

}  // namespace hetseq::option_setters
