#include "hetseq/session/rank_list.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most = 1'000'000'000;

std::optional<std::int64_t> to_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
        return std::nullopt;
    return value;
}

struct RankRange {
    std::int64_t first = 0, last = 0;
};

// "3" or "1-3".
std::optional<RankRange> to_ranks(std::string_view key) {
    const auto dash = key.find('-');
    const auto first = to_number(key.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_number(key.substr(dash + 1));
    if (!first || !last)
        return std::nullopt;
    return RankRange{*first, *last};
}

bool key_fits(const std::string& key, const RankInfo& info, const Topology& topology) {
    if (const auto ranks = to_ranks(key))
        return ranks->first <= info.rank && info.rank <= ranks->last;
    const bool is_host = std::any_of(topology.ranks.begin(),
                                     topology.ranks.end(),
                                     [&](const RankInfo& other) { return other.host == key; });
    return is_host ? key == info.host : holds_words(info.device_name, key);
}

struct Entry {
    std::string key;
    std::string value;
};

// How the entries of a list should look.
struct Form {
    std::function<bool(const std::string& value)> fits;
    std::string expected;
    std::string example;
};

std::vector<Entry> parse(const std::string& option, const std::string& list, const Form& form) {
    std::vector<Entry> entries;
    for (const std::string& text : split(list, ',')) {
        const std::vector<std::string> parts = split(text, '=');  // without blanks around them
        if (parts.size() != 2 || parts[0].empty() || !form.fits(parts[1]))
            throw BadConfig("--" + option + ": cannot read '" + text + "'",
                            "expected " + form.expected,
                            "write for example " + form.example);
        entries.push_back({parts[0], parts[1]});
    }
    return entries;
}

// What a key of a list may be, and whether it is the rank's.
struct Keys {
    std::string names;
    std::string example;
    std::function<bool(const std::string& key)> fits;
};

// The word that `list` has for a rank, or the one that it is; none where no entry fits.
std::optional<std::string> fitting_word(const std::string& option,
                                        const std::string& list,
                                        const std::vector<std::string>& words,
                                        const Keys& keys,
                                        OrNumber or_number = OrNumber::no) {
    const bool may_be_number = or_number == OrNumber::yes;
    const auto is_word = [&](const std::string& text) {
        return std::find(words.begin(), words.end(), text) != words.end() ||
               (may_be_number && to_number(text));
    };
    if (is_word(list))
        return list;
    const std::string expected =
        (may_be_number ? "N, " : "") + ("one of " + join(words, ", ")) + ", or KEY=WORD by ";
    const Form form{is_word, expected + keys.names, keys.example};
    for (const Entry& entry : parse(option, list, form))
        if (keys.fits(entry.key))
            return entry.value;
    return std::nullopt;
}

bool key_fits(const std::string& key, int rank, const std::string& host) {
    const auto ranks = to_ranks(key);
    return ranks ? ranks->first <= rank && rank <= ranks->last : key == host;
}

// Of the entries whose key `fits`.
template <class Fits>
std::string competing_among(const std::string& list, const Fits& fits) {
    std::vector<std::vector<std::string>> entries;  // key and value
    for (const std::string& text : split(list, ',')) {
        const std::vector<std::string> parts = split(text, '=');
        if (parts.size() == 2 && fits(parts[0]))
            entries.push_back(parts);
    }
    for (const auto& other : entries)
        if (other[1] != entries.front()[1])
            return "'" + join(entries.front(), "=") + "' and '" + join(other, "=") + "'";
    return "";
}

std::string place_of(const RankInfo& info) {
    return "on host " + info.host + ", device " + info.device_name;
}

[[noreturn]] void reject_rank(const std::string& option,
                              int rank,
                              const std::string& place,
                              const std::string& keys) {
    throw BadConfig("--" + option + " has no entry for rank " + std::to_string(rank),
                    place,
                    "add one, by " + keys);
}

}  // namespace

std::int64_t rank_value(const std::string& option,
                        const std::string& list,
                        const Topology& topology,
                        int rank) {
    if (const auto value = to_number(list))
        return *value;
    const Form numbers{[](const std::string& value) { return to_number(value).has_value(); },
                       "N, or KEY=N by rank, host or device",
                       "0=64,1-3=16 or v100=64,p100=16"};
    const RankInfo& info = topology.rank(rank);
    for (const Entry& entry : parse(option, list, numbers))
        if (key_fits(entry.key, info, topology))
            return *to_number(entry.value);
    reject_rank(option, rank, place_of(info), "rank, host or device");
}

std::string rank_word(const std::string& option,
                      const std::string& list,
                      const std::vector<std::string>& words,
                      int rank,
                      const std::string& host) {
    const auto fits = [&](const std::string& key) { return key_fits(key, rank, host); };
    const std::string example = "0-3=" + words.back() + ",4=" + words.front();
    if (const auto word = fitting_word(option, list, words, {"rank or host", example, fits}))
        return *word;
    reject_rank(option, rank, "on host " + host, "rank or host");
}

std::string rank_word(const std::string& option,
                      const std::string& list,
                      const std::vector<std::string>& words,
                      const Topology& topology,
                      int rank,
                      OrNumber or_number) {
    const RankInfo& info = topology.rank(rank);
    const auto fits = [&](const std::string& key) { return key_fits(key, info, topology); };
    const std::string keys = "rank, host or device";
    const std::string example = or_number == OrNumber::yes
                                    ? "v100=1,p100=5"
                                    : "v100=" + words.back() + ",p100=" + words.front();
    if (const auto word = fitting_word(option, list, words, {keys, example, fits}, or_number))
        return *word;
    reject_rank(option, rank, place_of(info), keys);
}

std::string competing_entries(const std::string& list, const Topology& topology, int rank) {
    const RankInfo& info = topology.rank(rank);
    return competing_among(list,
                           [&](const std::string& key) { return key_fits(key, info, topology); });
}

std::string competing_entries(const std::string& list, int rank, const std::string& host) {
    return competing_among(list, [&](const std::string& key) { return key_fits(key, rank, host); });
}

std::string rank_list(const std::vector<std::int64_t>& values) {
    std::vector<std::string> texts;
    for (const std::int64_t value : values)
        texts.push_back(std::to_string(value));
    return rank_list(texts);
}

std::string rank_list(const std::vector<std::string>& values) {
    if (std::all_of(values.begin(), values.end(), [&](const auto& value) {
            return value == values.front();
        }))
        return values.front();
    std::string list;
    for (std::size_t r = 0; r < values.size(); ++r)
        list += (r > 0 ? "," : "") + std::to_string(r) + "=" + values[r];
    return list;
}

}  // namespace hetseq
