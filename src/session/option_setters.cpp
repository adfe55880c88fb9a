#include "option_setters.hpp"

#include <algorithm>
#include <charconv>
#include <regex>
#include <utility>

#include "hetseq/util/option_value.hpp"
#include "hetseq/util/signal_inbox.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/session/rank_device.hpp"

namespace hetseq::option_setters {

namespace {

// One of several values, each by its name.
template <class T>
Setter named_value(Place<T> place, const std::vector<std::pair<std::string, T>>& values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values)
        names.push_back(name);
    const auto set = [place, values, names](Options& options, const std::string& text) {
        const auto found = std::find(names.begin(), names.end(), text);
        if (found == names.end())
            option_value::reject(text, "one of " + join(names, ", "));
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
        place(options) = option_value::choice(value, allowed);
    };
    return {set, allowed};
}

// Products of two such numbers stay far from overflowing.
Setter integer(Place<std::int64_t> place, std::int64_t minimum, std::int64_t maximum) {
    return [place, minimum, maximum](Options& options, const std::string& value) {
        place(options) = option_value::whole_number(value, minimum, maximum);
    };
}

Setter seed(Place<std::uint64_t> place) {
    return [place](Options& options, const std::string& value) {
        std::uint64_t number = 0;
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || end != value.data() + value.size())
            option_value::reject(value, "a whole number from 0 to 2^64 - 1");
        place(options) = number;
    };
}

Setter number(Place<double> place, double minimum, double maximum) {
    return [place, minimum, maximum](Options& options, const std::string& value) {
        place(options) = option_value::number(value, minimum, maximum);
    };
}

Setter probability(Place<std::optional<double>> place) {
    return [place](Options& options, const std::string& value) {
        if (value.empty())
            return;
        place(options) = option_value::fraction(value);
    };
}

Setter flag(Place<bool> place) {
    return [place](Options& options, const std::string& value) {
        place(options) = option_value::is_on(value);
    };
}

Setter duration(Place<double> place) {
    return [place](Options& options, const std::string& value) {
        static const std::regex form(R"((?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d))");
        std::smatch parts;
        if (value.empty())
            return;
        if (!std::regex_match(value, parts, form))
            option_value::reject(value, "a time such as 23:55:00 or 1-12:00:00");
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

Setter set_balance() {
    const auto set = [](Options& options, const std::string& value) {
        const std::string prefix = "file:";
        const bool is_file = value.rfind(prefix, 0) == 0 && value.size() > prefix.size();
        if (!is_file && value != "auto" && value != "declared" && value != "equal")
            option_value::reject(value, "one of auto, declared, equal, file:PATH");
        options.balance = is_file ? "file" : value;
        options.plan_file = is_file ? value.substr(prefix.size()) : "";
    };
    return {set, {"auto", "declared", "equal", "file:"}};
}

Setter set_device() {
    const std::vector<std::string> words = device_words();
    const auto set = [words](Options& options, const std::string& value) {
        const bool is_list = value.find('=') != std::string::npos;
        if (!is_list && std::find(words.begin(), words.end(), value) == words.end())
            option_value::reject(value,
                                 "one of " + join(words, ", ") + ", or a list by rank or host");
        options.device = value;
    };
    return {set, words};
}

Setter set_io() {
    return named_value<IoMode>([](Options & options) -> auto& { return options.corpus.io; },
                               {{"collective", IoMode::collective},
                                {"independent", IoMode::independent},
                                {"serial", IoMode::serial}});
}

}  // namespace hetseq::option_setters
