#include "hetseq/session/ranks/rank_options.hpp"

#include <charconv>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

// Texts of one rank's value, and how lists of them look.
template <class T>
struct ValueForm {
    std::function<std::optional<T>(const std::string&)> read = {};  // nothing: it is none
    std::string expected = {};                                      // "one of auto, cpu, cuda"
    std::string keys = "rank, host or device";
    std::string example = {};  // of a list
};

std::optional<std::int64_t> to_number(const std::string& text) {
    constexpr std::int64_t most = 1'000'000'000;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
        return std::nullopt;
    return value;
}

template <class T>
ByRank<T> read_by_rank(const std::string& text, const ValueForm<T>& form) {
    if (const std::optional<T> value = form.read(text))
        return ByRank<T>(*value);
    const std::string of_list = "KEY=VALUE by " + form.keys + ", as in " + form.example;
    const auto reject = [&](const std::string& part) {
        const bool lacks_key = part != text && form.read(part);
        option_value::reject(part, lacks_key ? of_list : form.expected + ", nor " + of_list);
    };
    std::vector<typename ByRank<T>::Entry> entries;
    for (const std::string& entry : split(text, ',')) {
        const std::vector<std::string> words = split(entry, '=');  // without blanks around them
        std::optional<T> value;
        if (words.size() == 2 && !words[0].empty())
            value = form.read(words[1]);
        if (!value)
            reject(entry);
        entries.push_back({words[0], *value});
    }
    if (entries.empty())
        reject(text);
    return ByRank<T>(std::move(entries));
}

template <class T>
Option<ByRank<T>> by_rank_option(OptionSpec spec, const ValueForm<T>& form) {
    const bool may_be_empty = spec.default_value.empty();
    const auto read = [form, may_be_empty](const std::string& text) {
        return may_be_empty && text.empty() ? ByRank<T>() : read_by_rank(text, form);
    };
    return Option<ByRank<T>>(std::move(spec), read).of_rank();
}

template <class T>
std::vector<std::string> words_of(const std::vector<T>& choices) {
    std::vector<std::string> words;
    for (const T& choice : choices)
        words.push_back(choice_text(choice));
    return words;
}

template <class T>
std::optional<T> chosen(const std::vector<T>& choices, const std::string& word) {
    for (const T& choice : choices)
        if (choice_text(choice) == word)
            return choice;
    return std::nullopt;
}

// One of `choices`, by its word, or what `of_number` makes of a number, where there is that.
template <class T>
Option<ByRank<T>> choice_by_rank_option(OptionSpec spec,
                                        const std::vector<T>& choices,
                                        ValueForm<T> form,
                                        const std::function<T(std::int64_t)>& of_number = {}) {
    spec.type = of_number ? "N|NAME|LIST" : "NAME|LIST";
    spec.choices = words_of(choices);
    form.read = [choices, of_number](const std::string& text) {
        const std::optional<std::int64_t> number = of_number ? to_number(text) : std::nullopt;
        return number ? std::optional<T>(of_number(*number)) : chosen(choices, text);
    };
    form.expected = (of_number ? "a number or " : "") + ("one of " + join(spec.choices, ", "));
    return by_rank_option(std::move(spec), form);
}

std::vector<PrecisionChoice> precision_choices() {
    std::vector<PrecisionChoice> choices{std::nullopt};
    for (const std::string& word : precision_words())
        choices.emplace_back(precision_of(word));
    return choices;
}

}  // namespace

Option<ByRank<std::int64_t>> number_by_rank_option(const std::string& name,
                                                   const std::string& default_value,
                                                   const std::string& help) {
    return by_rank_option<std::int64_t>({name, "N|LIST", default_value, help},
                                        {.read = to_number,
                                         .expected = "a whole number from 0 to 1000000000",
                                         .example = "0=64,1-3=16 or v100=64,p100=16"});
}

Option<ByRank<DeviceChoice>> device_option(const std::string& help) {
    return choice_by_rank_option<DeviceChoice>(
        {"device", "", "auto", help},
        {DeviceChoice::automatic, DeviceChoice::cpu, DeviceChoice::cuda},
        {.keys = "rank or host", .example = "0-3=cuda,4=cpu"});
}

Option<ByRank<PrecisionChoice>> precision_option(const std::string& help) {
    return choice_by_rank_option<PrecisionChoice>({"precision", "", "fp32", help},
                                                  precision_choices(),
                                                  {.example = "v100=fp16,a100=bf16,p100=fp32"});
}

Option<ByRank<RecomputeChoice>> recompute_option(const std::string& help) {
    return choice_by_rank_option<RecomputeChoice>(
        {"recompute", "", "auto", help},
        {std::nullopt, 0, all_layers},
        {.example = "v100=all,a100=none"},
        [](std::int64_t layers) { return RecomputeChoice(layers); });
}

Option<ByRank<ShardPart>> shard_by_option(const std::string& help) {
    const auto of_number = [](std::int64_t part) { return ShardPart{ShardPart::By::number, part}; };
    return choice_by_rank_option<ShardPart>({"shard-by", "", "memory", help},
                                            {{ShardPart::By::memory}, {ShardPart::By::even}},
                                            {.example = "v100=1,a100=5"},
                                            of_number);
}

}  // namespace hetseq
