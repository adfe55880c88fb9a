#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/session/ranks/rank_choices.hpp"

namespace hetseq {

/// A rank, as the keys of a list by rank name it.
class RankPlace {
public:
    /// Before devices are known.
    RankPlace(int rank, std::string host);
    /// `topology` outlives this.
    RankPlace(const Topology& topology, int rank);

    int rank() const noexcept { return rank_; }
    /// `key` is a rank ("3"), a range of ranks ("0-3"), a host's name or, where devices are known,
    /// words of a device's name ("v100", any case). A host's name is never read as a device's.
    bool is_named_by(const std::string& key) const;
    /// "on host h1, device Tesla P100".
    std::string text() const;
    /// The kinds of keys that may name it: "rank, host or device".
    std::string kinds_of_keys() const;

private:
    int rank_;
    std::string host_;
    const Topology* topology_ = nullptr;  // null: devices are not known
};

/// An option's value that ranks may have unlike: one for all of them, or a list
/// "KEY=VALUE,KEY=VALUE,...". The first entry whose key names a rank counts. Entries may name no
/// rank, so that one list serves every job on a cluster.
template <class T>
class ByRank {
public:
    struct Entry {
        std::string key;
        T value;
    };

    /// The value of an option that was left empty.
    ByRank() = default;
    explicit ByRank(T for_all) : for_all_{std::move(for_all)} {}
    explicit ByRank(std::vector<Entry> entries) : entries_{std::move(entries)} {}

    bool is_empty() const noexcept { return !for_all_ && entries_.empty(); }
    /// Nothing where there is a list.
    const std::optional<T>& for_all() const noexcept { return for_all_; }

    /// Nothing where no entry names the rank.
    std::optional<T> find(const RankPlace& place) const {
        if (for_all_)
            return for_all_;
        for (const Entry& entry : entries_)
            if (place.is_named_by(entry.key))
                return entry.value;
        return std::nullopt;
    }

    /// The value for all and those of a list, in its order.
    std::vector<T> values() const {
        std::vector<T> values;
        if (for_all_)
            values.push_back(*for_all_);
        for (const Entry& entry : entries_)
            values.push_back(entry.value);
        return values;
    }

    /// "'1=64' and 'h1=16'": the entry that counts for a rank, and the first other one that names
    /// it and has another value; empty where there is none.
    std::string competing_entries(const RankPlace& place) const {
        const Entry* first = nullptr;
        for (const Entry& entry : entries_) {
            if (!place.is_named_by(entry.key))
                continue;
            if (first == nullptr)
                first = &entry;
            else if (!(entry.value == first->value))
                return "'" + text_of(*first) + "' and '" + text_of(entry) + "'";
        }
        return "";
    }

    /// As the option is written.
    std::string text() const {
        std::string text = for_all_ ? choice_text(*for_all_) : "";
        for (const Entry& entry : entries_)
            text += (text.empty() ? "" : ",") + text_of(entry);
        return text;
    }

private:
    static std::string text_of(const Entry& entry) {
        return entry.key + "=" + choice_text(entry.value);
    }

    std::optional<T> for_all_;
    std::vector<Entry> entries_;
};

/// The value of a rank in --`option`, which has `list`. Throws BadConfig where no entry names it.
template <class T>
T value_of_rank(const std::string& option, const ByRank<T>& list, const RankPlace& place) {
    if (const std::optional<T> value = list.find(place))
        return *value;
    throw BadConfig("--" + option + " has no entry for rank " + std::to_string(place.rank()),
                    place.text(),
                    "add one, by " + place.kinds_of_keys());
}

/// The list of values, rank r's being the r-th; one for all where they are equal, and empty where
/// there is none.
template <class T>
ByRank<T> list_by_rank(const std::vector<T>& values) {
    if (values.empty())
        return {};
    if (std::count(values.begin(), values.end(), values.front()) == std::ssize(values))
        return ByRank<T>(values.front());
    std::vector<typename ByRank<T>::Entry> entries;
    for (const T& value : values)
        entries.push_back({std::to_string(entries.size()), value});
    return ByRank<T>(std::move(entries));
}

}  // namespace hetseq
