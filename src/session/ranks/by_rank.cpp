#include "hetseq/session/ranks/by_rank.hpp"

#include <charconv>
#include <string_view>

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

std::optional<int> to_rank(std::string_view text) {
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc() || end != text.data() + text.size() || rank < 0)
        return std::nullopt;
    return rank;
}

struct RankRange {
    int first = 0, last = 0;
};

// "3" or "1-3".
std::optional<RankRange> to_ranks(std::string_view key) {
    const auto dash = key.find('-');
    const auto first = to_rank(key.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_rank(key.substr(dash + 1));
    if (!first || !last)
        return std::nullopt;
    return RankRange{*first, *last};
}

bool is_host(const Topology& topology, const std::string& name) {
    return std::any_of(topology.ranks.begin(), topology.ranks.end(), [&](const RankInfo& info) {
        return info.host == name;
    });
}

}  // namespace

RankPlace::RankPlace(int rank, std::string host) : rank_{rank}, host_{std::move(host)} {}

RankPlace::RankPlace(const Topology& topology, int rank)
    : rank_{rank}, host_{topology.rank(rank).host}, topology_{&topology} {}

bool RankPlace::is_named_by(const std::string& key) const {
    if (const auto ranks = to_ranks(key))
        return ranks->first <= rank_ && rank_ <= ranks->last;
    if (topology_ == nullptr || is_host(*topology_, key))
        return key == host_;
    return holds_words(topology_->rank(rank_).device_name, key);
}

std::string RankPlace::text() const {
    return "on host " + host_ +
           (topology_ != nullptr ? ", device " + topology_->rank(rank_).device_name : "");
}

std::string RankPlace::kinds_of_keys() const {
    return topology_ != nullptr ? "rank, host or device" : "rank or host";
}

}  // namespace hetseq
