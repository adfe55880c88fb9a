#include "hierarchical_reduce.hpp"

#include <algorithm>
#include <cstring>

#include "hetseq/comm/mpi/mpi_try.hpp"

#include "comm/mpi/messages_in_flight.hpp"
#include "lane_stages.hpp"

namespace hetseq {

namespace {

struct LaneInFlight {
    LaneLayout layout;
    std::vector<LaneStage> stages;
    std::size_t stage = 0;    // of `stages`
    std::size_t pending = 0;  // messages of this stage
    std::byte* values = nullptr;
    std::byte* received = nullptr;  // what is to be added to them
};

// The elements that one stage receives in order to add them.
std::size_t most_added(const std::vector<LaneStage>& stages) {
    std::size_t most = 0;
    for (const LaneStage& stage : stages) {
        std::size_t length = 0;
        for (const LaneTransfer& transfer : stage.receives)
            length += transfer.part.length;
        most = std::max(most, stage.adds ? length : 0);
    }
    return most;
}

// The values go through in pieces, each of which holds a part of every rank's range. A piece's
// lanes are copied out of the values, sent and summed stage by stage, and copied back. While one
// piece is between hosts, another one can be within them.
class Hierarchical {
public:
    Hierarchical(HierarchicalOperation operation,
                 const HierarchicalRun& run,
                 const Values& values,
                 const std::vector<ElementRange>& ranges)
        : operation_{operation},
          run_{run},
          values_{values},
          rank_{rank_of(run.comm)},
          host_{run.hosts.host_of(rank_)},
          ranges_{run.hosts, ranges},
          lanes_{run.hosts, rank_, lane_count(run.hosts)},
          message_length_{std::max<std::size_t>(run.message_bytes / values.bytes, 1)},
          pieces_{(ranges_.total() * values.bytes + run.piece_bytes - 1) / run.piece_bytes},
          own_{own_indices()} {
        for (std::size_t slot = 0; slot < pieces_in_flight; ++slot) {
            slots_[slot].next_piece = slot;
            start_pieces(slot);
        }
    }

    bool complete() const noexcept { return messages_.empty(); }

    /// Takes in what has arrived and starts what may start then. True when anything moved.
    bool advance() {
        const std::vector<Owner>& complete = messages_.take_complete();
        for (const Owner owner : complete)
            message_is_complete(owner);
        return !complete.empty();
    }

private:
    struct Owner {
        std::size_t slot = 0;
        std::size_t lane = 0;
    };
    struct Slot {
        std::size_t next_piece = 0;  // each slot has its own, or tags would differ over ranks
        std::vector<LaneInFlight> lanes;
        std::size_t lanes_left = 0;
    };

    static int rank_of(MPI_Comm comm) {
        int rank = 0;
        MPI_TRY(MPI_Comm_rank(comm, &rank));
        return rank;
    }

    // What belongs to this rank, as indices of its host.
    ElementRange own_indices() const {
        const std::vector<int>& locals = run_.hosts.ranks_on(host_);
        const auto place = std::find(locals.begin(), locals.end(), rank_) - locals.begin();
        return ranges_.of_local_rank(host_, static_cast<int>(place));
    }

    // The slot's next piece, and others where it has nothing for this rank to do.
    void start_pieces(std::size_t slot) {
        for (std::size_t& next = slots_[slot].next_piece; next < pieces_;) {
            make_lanes(slot, next);
            next += pieces_in_flight;
            for (std::size_t lane = 0; lane < slots_[slot].lanes.size(); ++lane)
                start_stage({slot, lane});
            if (slots_[slot].lanes_left > 0)
                return;
        }
    }

    void make_lanes(std::size_t slot, std::size_t piece) {
        std::vector<LaneInFlight>& lanes = slots_[slot].lanes;
        lanes.clear();
        std::size_t elements = 0;
        for (int lane = 0; lane < lanes_.count; ++lane) {
            LaneLayout layout{ranges_, run_.hosts.hosts(), piece, pieces_, lane, lanes_.count};
            auto stages = lane_stages(operation_, lanes_, lane, layout, ranges_);
            elements += layout.length() + most_added(stages);
            lanes.push_back({std::move(layout), std::move(stages)});
        }
        slots_[slot].lanes_left = lanes.size();
        std::vector<std::byte>& scratch = run_.scratch[slot];
        scratch.resize(std::max(scratch.size(), elements * values_.bytes));
        std::byte* next = scratch.data();
        for (LaneInFlight& lane : lanes) {
            lane.values = next;
            lane.received = next + lane.layout.length() * values_.bytes;
            next = lane.received + most_added(lane.stages) * values_.bytes;
            copy_in(lane);
        }
    }

    // Calls copy(in the tensor, in the lane, bytes) for what the lane holds of `part` of a host.
    template <class Copy>
    void copy(const LaneInFlight& lane, int host, ElementRange part, Copy&& copy) const {
        const ElementRange held = lane.layout.within(host, part);
        const ElementRange of_host = lane.layout.of_hosts(host, host + 1);
        const std::size_t first = lane.layout.indices(host).begin + held.begin - of_host.begin;
        std::byte* in_lane = lane.values + held.begin * values_.bytes;
        ranges_.visit(host, {first, held.length}, [&](std::size_t begin, std::size_t count) {
            copy(values_.begin + begin * values_.bytes, in_lane, count * values_.bytes);
            in_lane += count * values_.bytes;
        });
    }

    void copy_in(const LaneInFlight& lane) const {
        const auto to_lane = [](const std::byte* tensor, std::byte* in_lane, std::size_t bytes) {
            std::memcpy(in_lane, tensor, bytes);
        };
        if (operation_ == HierarchicalOperation::all_gather)
            copy(lane, host_, own_, to_lane);
        else
            for (int host = 0; host < run_.hosts.hosts(); ++host)
                copy(lane, host, lane.layout.indices(host), to_lane);
    }

    void copy_out(const LaneInFlight& lane) const {
        const auto to_tensor = [](std::byte* tensor, const std::byte* in_lane, std::size_t bytes) {
            std::memcpy(tensor, in_lane, bytes);
        };
        if (operation_ == HierarchicalOperation::reduce_scatter)
            copy(lane, host_, own_, to_tensor);
        else
            for (int host = 0; host < run_.hosts.hosts(); ++host)
                copy(lane, host, lane.layout.indices(host), to_tensor);
    }

    LaneInFlight& lane_of(Owner owner) { return slots_[owner.slot].lanes[owner.lane]; }

    void start_stage(Owner owner) {
        LaneInFlight& lane = lane_of(owner);
        if (lane.stage == lane.stages.size()) {
            copy_out(lane);
            --slots_[owner.slot].lanes_left;
            return;
        }
        const LaneStage& stage = lane.stages[lane.stage];
        const int tag =
            (static_cast<int>(owner.slot) * lanes_.count + static_cast<int>(owner.lane)) *
                lane_tags +
            stage.tag;
        std::byte* received = lane.received;
        for (const LaneTransfer& transfer : stage.receives) {
            receive(owner, transfer, stage.adds ? received : place(lane, transfer.part), tag);
            received += transfer.part.length * values_.bytes;
        }
        for (const LaneTransfer& transfer : stage.sends)
            send(owner, transfer, place(lane, transfer.part), tag);
    }

    std::byte* place(const LaneInFlight& lane, ElementRange part) const {
        return lane.values + part.begin * values_.bytes;
    }

    // Calls message(first byte, bytes) for each message of a transfer.
    template <class Message>
    void cut(const LaneTransfer& transfer, std::byte* begin, Message&& message) const {
        for (std::size_t done = 0; done < transfer.part.length; done += message_length_) {
            const std::size_t length = std::min(message_length_, transfer.part.length - done);
            message(begin + done * values_.bytes, length * values_.bytes);
        }
    }

    void receive(Owner owner, const LaneTransfer& transfer, std::byte* target, int tag) {
        cut(transfer, target, [&](std::byte* begin, std::size_t bytes) {
            ++lane_of(owner).pending;
            messages_.receive(begin, bytes, transfer.peer, tag, owner);
        });
    }

    void send(Owner owner, const LaneTransfer& transfer, std::byte* source, int tag) {
        cut(transfer, source, [&](std::byte* begin, std::size_t bytes) {
            ++lane_of(owner).pending;
            messages_.send(begin, bytes, transfer.peer, tag, owner);
        });
    }

    void message_is_complete(Owner owner) {
        LaneInFlight& lane = lane_of(owner);
        if (--lane.pending > 0)
            return;
        if (lane.stages[lane.stage].adds)
            add_received(lane);
        ++lane.stage;
        start_stage(owner);
        if (slots_[owner.slot].lanes_left == 0)
            start_pieces(owner.slot);
    }

    void add_received(const LaneInFlight& lane) const {
        const std::vector<LaneTransfer>& receives = lane.stages[lane.stage].receives;
        const auto before = static_cast<std::size_t>(lane.stages[lane.stage].before_own);
        const std::byte* next = lane.received;
        for (std::size_t i = 0; i < receives.size();) {
            const ElementRange part = receives[i].part;
            std::byte* own = place(lane, part);
            std::vector<const std::byte*> parts;
            std::size_t own_place = std::max(i, before);
            for (; i < receives.size() && receives[i].part == part; ++i) {
                if (i == own_place)
                    parts.push_back(own);
                parts.push_back(next);
                next += part.length * values_.bytes;
            }
            if (i == own_place)
                parts.push_back(own);
            values_.sum(own, parts, part.length);
        }
    }

    HierarchicalOperation operation_;
    const HierarchicalRun& run_;
    const Values& values_;
    int rank_;
    int host_;
    HostRanges ranges_;
    Lanes lanes_;
    std::size_t message_length_;  // elements
    std::size_t pieces_;
    ElementRange own_;  // indices of the host
    std::array<Slot, pieces_in_flight> slots_;
    MessagesInFlight<Owner> messages_{run_.comm};
};

void run_to_end(HierarchicalOperation operation,
                const HierarchicalRun& run,
                const Values& values,
                const std::vector<ElementRange>& ranges) {
    Hierarchical hierarchical{operation, run, values, ranges};
    complete(hierarchical, run.progress);
}

}  // namespace

void hierarchical_reduce_scatter(const HierarchicalRun& run,
                                 const Values& values,
                                 const std::vector<ElementRange>& ranges) {
    run_to_end(HierarchicalOperation::reduce_scatter, run, values, ranges);
}

void hierarchical_all_gather(const HierarchicalRun& run,
                             const Values& values,
                             const std::vector<ElementRange>& ranges) {
    run_to_end(HierarchicalOperation::all_gather, run, values, ranges);
}

void hierarchical_all_reduce(const HierarchicalRun& run, const Values& values) {
    std::vector<ElementRange> ranges(static_cast<std::size_t>(run.hosts.ranks()));
    const auto hosts = static_cast<std::size_t>(run.hosts.hosts());
    for (std::size_t host = 0; host < hosts; ++host) {
        const std::size_t begin = values.count * host / hosts;
        const std::size_t end = values.count * (host + 1) / hosts;
        const int first = run.hosts.ranks_on(static_cast<int>(host)).front();
        ranges[static_cast<std::size_t>(first)] = {begin, end - begin};
    }
    run_to_end(HierarchicalOperation::all_reduce, run, values, ranges);
}

}  // namespace hetseq
