#include "cut_mismatch.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/data/order/tiling.hpp"

namespace hetseq {

namespace {

// By rank.
struct Cuts {
    std::vector<std::string> hosts;
    std::vector<std::int64_t> begins, ends;          // positions in the batch
    std::vector<std::int64_t> begin_keys, end_keys;  // of the slices' borders
    std::vector<std::int64_t> batch_keys;            // of both borders of the batch

    std::string name(std::size_t rank) const {
        return "rank " + std::to_string(rank) + " on " + hosts[rank];
    }
};

Cuts gather(const HostComm& comm, const GlobalBatch& batch, const Slice& slice) {
    const std::int64_t batch_key = border_hash(batch, batch.begin) ^ border_hash(batch, batch.end);
    return {comm.all_gather(host_name()),
            comm.all_gather(slice.begin - batch.begin),
            comm.all_gather(slice.end - batch.begin),
            comm.all_gather(border_hash(batch, slice.begin)),
            comm.all_gather(border_hash(batch, slice.end)),
            comm.all_gather(batch_key)};
}

// The first ranks that do not fit to those before them.
std::string mismatch(const Cuts& cuts, std::int64_t batch_size) {
    const std::size_t ranks = cuts.hosts.size();
    for (std::size_t r = 1; r < ranks; ++r)
        if (cuts.batch_keys[r] != cuts.batch_keys[0])
            return cuts.name(r) + " has another batch than " + cuts.name(0);
    std::size_t before = ranks;  // the last rank that has samples
    for (std::size_t r = 0; r < ranks; ++r) {
        if (cuts.begins[r] == cuts.ends[r])
            continue;
        if (before < ranks && cuts.begin_keys[r] != cuts.end_keys[before])
            return cuts.name(before) + " ends before sample " + std::to_string(cuts.ends[before]) +
                   " of the batch, " + cuts.name(r) + " begins with sample " +
                   std::to_string(cuts.begins[r]);
        if (before == ranks && cuts.begins[r] != 0)
            return cuts.name(r) + " begins with sample " + std::to_string(cuts.begins[r]) +
                   " of the batch, no rank takes those before";
        before = r;
    }
    if (before == ranks)
        return "no rank takes any of the " + std::to_string(batch_size) + " samples";
    return cuts.name(before) + " ends before sample " + std::to_string(cuts.ends[before]) +
           " of the batch, which has " + std::to_string(batch_size);
}

}  // namespace

void throw_cut_mismatch(const HostComm& comm, const GlobalBatch& batch, const Slice& slice) {
    const Cuts cuts = gather(comm, batch, slice);
    const std::int64_t update = comm.broadcast(batch.update, 0);
    const std::string why = mismatch(cuts, comm.broadcast(batch.size(), 0));
    throw AgreedError(ExitCode::internal,
                      Explanation{"internal error: the ranks cut batch " +
                                      std::to_string(update + 1) + " in unlike ways",
                                  why,
                                  "continue from the last checkpoint with the same build on all "
                                  "hosts, and please report this"});
}

}  // namespace hetseq
