#pragma once

#include <cstddef>
#include <vector>

#include "comm/mpi/host_map.hpp"

namespace hetseq {

/// A stretch of a tensor's elements.
struct ElementRange {
    std::size_t begin = 0;
    std::size_t length = 0;

    bool operator==(const ElementRange&) const = default;
};

/// What belongs to each host: the ranges of its ranks, one after the other in the order of ranks.
/// A place among them is called an index of the host.
class HostRanges {
public:
    /// `ranges` by rank; none overlap, and they may be empty.
    HostRanges(const HostMap& hosts, const std::vector<ElementRange>& ranges);

    std::size_t length(int host) const { return ends_.at(at(host)).back(); }
    std::size_t total() const noexcept { return total_; }
    /// The indices of what belongs to the host's rank of this place on it.
    ElementRange of_local_rank(int host, int place) const;

    /// Calls visit(first element, count) for each stretch of the tensor in the indices `part`.
    template <class Visit>
    void visit(int host, ElementRange part, Visit&& visit) const {
        const auto& ranges = ranges_[at(host)];
        const auto& ends = ends_[at(host)];
        std::size_t index = part.begin;
        const std::size_t end = part.begin + part.length;
        for (std::size_t i = 0; i < ranges.size() && index < end; ++i) {
            if (ends[i] <= index)
                continue;
            const std::size_t begin = ends[i] - ranges[i].length;
            const std::size_t count = (end < ends[i] ? end : ends[i]) - index;
            visit(ranges[i].begin + index - begin, count);
            index += count;
        }
    }

private:
    static std::size_t at(int host) noexcept { return static_cast<std::size_t>(host); }

    std::vector<std::vector<ElementRange>> ranges_;  // by host
    std::vector<std::vector<std::size_t>> ends_;     // of `ranges_`, as indices of the host
    std::size_t total_ = 0;
};

/// A lane of a piece: a part of what belongs to each host, in the order of hosts.
class LaneLayout {
public:
    LaneLayout(const HostRanges& ranges,
               int hosts,
               std::size_t piece,
               std::size_t pieces,
               int lane,
               int lanes);

    std::size_t length() const noexcept { return offsets_.back(); }
    /// The lane's elements of the hosts [begin, end).
    ElementRange of_hosts(int begin, int end) const;
    /// The indices of `host` that the lane holds.
    ElementRange indices(int host) const;
    /// The lane's elements with the indices `part` of `host`; what it doesn't hold is left out.
    ElementRange within(int host, ElementRange part) const;

private:
    std::vector<std::size_t> first_index_;  // by host
    std::vector<std::size_t> offsets_;      // by host, and the end
};

}  // namespace hetseq
