#include "lane_layout.hpp"

#include <algorithm>

namespace hetseq {

namespace {

// Part `index` of `parts` nearly equal ones.
ElementRange part_of(const ElementRange& whole, std::size_t index, std::size_t parts) {
    const std::size_t begin = whole.length * index / parts;
    const std::size_t end = whole.length * (index + 1) / parts;
    return {whole.begin + begin, end - begin};
}

}  // namespace

HostRanges::HostRanges(const HostMap& hosts, const std::vector<ElementRange>& ranges) {
    for (int host = 0; host < hosts.hosts(); ++host) {
        auto& own = ranges_.emplace_back();
        auto& ends = ends_.emplace_back();
        std::size_t end = 0;
        for (const int rank : hosts.ranks_on(host)) {
            own.push_back(ranges.at(static_cast<std::size_t>(rank)));
            end += own.back().length;
            ends.push_back(end);
        }
        total_ += end;
    }
}

ElementRange HostRanges::of_local_rank(int host, int place) const {
    const auto i = static_cast<std::size_t>(place);
    const std::size_t length = ranges_[at(host)].at(i).length;
    return {ends_[at(host)][i] - length, length};
}

LaneLayout::LaneLayout(
    const HostRanges& ranges, int hosts, std::size_t piece, std::size_t pieces, int lane, int lanes)
    : offsets_{0} {
    for (int host = 0; host < hosts; ++host) {
        const ElementRange of_piece = part_of({0, ranges.length(host)}, piece, pieces);
        const ElementRange of_lane =
            part_of(of_piece, static_cast<std::size_t>(lane), static_cast<std::size_t>(lanes));
        first_index_.push_back(of_lane.begin);
        offsets_.push_back(offsets_.back() + of_lane.length);
    }
}

ElementRange LaneLayout::of_hosts(int begin, int end) const {
    const std::size_t first = offsets_[static_cast<std::size_t>(begin)];
    return {first, offsets_[static_cast<std::size_t>(end)] - first};
}

ElementRange LaneLayout::indices(int host) const {
    return {first_index_[static_cast<std::size_t>(host)], of_hosts(host, host + 1).length};
}

ElementRange LaneLayout::within(int host, ElementRange part) const {
    const ElementRange held = indices(host);
    const std::size_t begin = std::max(held.begin, part.begin);
    const std::size_t end = std::min(held.begin + held.length, part.begin + part.length);
    if (begin >= end)
        return {};
    return {of_hosts(host, host + 1).begin + begin - held.begin, end - begin};
}

}  // namespace hetseq
