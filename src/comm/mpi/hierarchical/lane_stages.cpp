#include "lane_stages.hpp"

#include <algorithm>
#include <utility>

#include "recursive_halving.hpp"

namespace hetseq {

namespace {

enum StageTag { to_summing = 0, to_owners = 1, from_owners = 2, to_all = 3, first_halving = 4 };
constexpr int first_doubling = first_halving + 30;  // levels of up to 2^30 hosts

class StageList {
public:
    StageList(const Lanes& lanes, int lane, const LaneLayout& layout, const HostRanges& ranges)
        : lanes_{lanes},
          lane_{lane},
          layout_{layout},
          ranges_{ranges},
          host_{lanes.hosts.host_of(lanes.rank)},
          locals_{lanes.hosts.ranks_on(host_)},
          summing_{lanes.rank_of(host_, lane)} {}

    std::vector<LaneStage> make(HierarchicalOperation operation) {
        if (operation != HierarchicalOperation::all_gather) {
            sum_in_host();
            halve();
        }
        if (operation == HierarchicalOperation::reduce_scatter)
            give_to_owners();
        if (operation == HierarchicalOperation::all_gather)
            take_from_owners();
        if (operation != HierarchicalOperation::reduce_scatter) {
            double_again();
            give_to_all();
        }
        return std::move(stages_);
    }

private:
    bool sums() const noexcept { return lanes_.rank == summing_; }
    ElementRange whole() const noexcept { return {0, layout_.length()}; }
    // What belongs to the rank of this place on the host.
    ElementRange owned(std::size_t place) const {
        return layout_.within(host_, ranges_.of_local_rank(host_, static_cast<int>(place)));
    }
    std::size_t own_place() const {
        return static_cast<std::size_t>(std::find(locals_.begin(), locals_.end(), lanes_.rank) -
                                        locals_.begin());
    }

    void add(LaneStage stage) {
        const auto drop_empty = [](std::vector<LaneTransfer>& transfers) {
            std::erase_if(transfers, [](const LaneTransfer& one) { return one.part.length == 0; });
        };
        drop_empty(stage.sends);
        drop_empty(stage.receives);
        if (!stage.sends.empty() || !stage.receives.empty())
            stages_.push_back(std::move(stage));
    }

    void sum_in_host() {
        LaneStage stage{.tag = to_summing, .adds = true};
        if (!sums()) {
            stage.sends.push_back({summing_, whole()});
            return add(std::move(stage));
        }
        for (const int rank : locals_)
            if (rank != summing_)
                stage.receives.push_back({rank, whole()});
        stage.before_own = static_cast<int>(own_place());
        add(std::move(stage));
    }

    std::vector<LaneTransfer> between_hosts(const std::vector<HostExchange>& exchanges) const {
        std::vector<LaneTransfer> transfers;
        for (const HostExchange& one : exchanges)
            transfers.push_back(
                {lanes_.rank_of(one.host, lane_), layout_.of_hosts(one.begin, one.end)});
        return transfers;
    }

    void halve() {
        if (!sums())
            return;
        int tag = first_halving;
        for (const HalvingLevel& level : halving_levels_of(host_, lanes_.hosts.hosts()))
            add({.tag = tag++,
                 .sends = between_hosts(level.gives),
                 .receives = between_hosts(level.gets),
                 .adds = true});
    }

    void double_again() {
        if (!sums())
            return;
        const auto levels = halving_levels_of(host_, lanes_.hosts.hosts());
        int tag = first_doubling + static_cast<int>(levels.size());
        for (auto level = levels.rbegin(); level != levels.rend(); ++level)
            add({.tag = --tag,
                 .sends = between_hosts(level->gets),
                 .receives = between_hosts(level->gives)});
    }

    // What belongs to the other ranks of the host, or this rank's own part from the summing one.
    std::vector<LaneTransfer> parts_of_owners() const {
        if (!sums())
            return {{summing_, owned(own_place())}};
        std::vector<LaneTransfer> parts;
        for (std::size_t place = 0; place < locals_.size(); ++place)
            if (locals_[place] != summing_)
                parts.push_back({locals_[place], owned(place)});
        return parts;
    }

    void give_to_owners() {
        LaneStage stage{.tag = to_owners};
        (sums() ? stage.sends : stage.receives) = parts_of_owners();
        add(std::move(stage));
    }

    void take_from_owners() {
        LaneStage stage{.tag = from_owners};
        (sums() ? stage.receives : stage.sends) = parts_of_owners();
        add(std::move(stage));
    }

    void give_to_all() {
        LaneStage stage{.tag = to_all};
        if (!sums())
            stage.receives.push_back({summing_, whole()});
        else
            for (const int rank : locals_)
                if (rank != summing_)
                    stage.sends.push_back({rank, whole()});
        add(std::move(stage));
    }

    const Lanes& lanes_;
    int lane_;
    const LaneLayout& layout_;
    const HostRanges& ranges_;
    int host_;
    const std::vector<int>& locals_;
    int summing_;  // the rank of this host that sums the lane
    std::vector<LaneStage> stages_;
};

}  // namespace

int Lanes::rank_of(int host, int lane) const {
    const std::vector<int>& ranks = hosts.ranks_on(host);
    return ranks[static_cast<std::size_t>(lane) * ranks.size() / static_cast<std::size_t>(count)];
}

int lane_count(const HostMap& hosts) noexcept {
    return std::min(hosts.largest_host(), 16);
}

std::vector<LaneStage> lane_stages(HierarchicalOperation operation,
                                   const Lanes& lanes,
                                   int lane,
                                   const LaneLayout& layout,
                                   const HostRanges& ranges) {
    return StageList{lanes, lane, layout, ranges}.make(operation);
}

}  // namespace hetseq
