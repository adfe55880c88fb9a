#include "nccl_ranges.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "comm/joined_ranges.hpp"
#include "nccl_try.hpp"
#include "nccl_work.hpp"

namespace hetseq {

namespace {

// What this thread asks NCCL for while it lives is launched by `end` as one. It must not stay open
// when a call fails: NCCL would put off even the abort of the communicator.
class NcclGroup {
public:
    NcclGroup() { NCCL_TRY(ncclGroupStart()); }
    ~NcclGroup() {
        if (open_)
            ncclGroupEnd();
    }
    NcclGroup(const NcclGroup&) = delete;
    NcclGroup& operator=(const NcclGroup&) = delete;

    void end() {
        open_ = false;
        NCCL_TRY(ncclGroupEnd());
    }

private:
    bool open_ = true;
};

std::vector<OwnedRange> joined(const std::vector<OwnedRange>& ranges) {
    std::vector<OwnedRange> all;
    for (const OwnedRange& range : ranges)
        add_joined(all, range);
    return all;
}

// Whether the ranges are as NCCL's own calls have them: of one length, end to end, and owned by all
// ranks in order.
bool are_even(const std::vector<OwnedRange>& ranges, int ranks) {
    if (ranges.size() != static_cast<std::size_t>(ranks))
        return false;
    const OwnedRange& first = ranges.front();
    for (int rank = 0; rank < ranks; ++rank)
        if (ranges[static_cast<std::size_t>(rank)] !=
            OwnedRange{rank, first.begin + rank * first.length, first.length})
            return false;
    return true;
}

std::byte* start_of(const at::Tensor& tensor, const OwnedRange& range) {
    return static_cast<std::byte*>(tensor.mutable_data_ptr()) +
           static_cast<std::size_t>(range.begin) * tensor.element_size();
}

std::size_t bytes_of(const at::Tensor& tensor, const OwnedRange& range) {
    return static_cast<std::size_t>(range.length) * tensor.element_size();
}

// `call(comm, range)` for each, in groups.
template <class Call>
void launch_groups(NcclChannel& channel, std::span<const OwnedRange> ranges, Call&& call) {
    for (std::size_t begin = 0; begin < ranges.size(); begin += most_in_nccl_group)
        channel.launch([&](ncclComm_t comm) {
            NcclGroup group;
            for (const OwnedRange& range :
                 ranges.subspan(begin, std::min(most_in_nccl_group, ranges.size() - begin)))
                call(comm, range);
            group.end();
        });
}

void launch_even_reduce_scatter(NcclChannel& channel,
                                const at::Tensor& tensor,
                                ncclDataType_t type,
                                const std::vector<OwnedRange>& ranges) {
    const OwnedRange& own = ranges[static_cast<std::size_t>(channel.rank())];
    channel.launch([&](ncclComm_t comm) {
        NCCL_TRY(ncclReduceScatter(start_of(tensor, ranges.front()),
                                   start_of(tensor, own),
                                   static_cast<std::size_t>(own.length),
                                   type,
                                   ncclSum,
                                   comm,
                                   channel.stream().stream()));
    });
}

void launch_even_all_gather(NcclChannel& channel,
                            const at::Tensor& tensor,
                            const std::vector<OwnedRange>& ranges) {
    const OwnedRange& own = ranges[static_cast<std::size_t>(channel.rank())];
    channel.launch([&](ncclComm_t comm) {
        NCCL_TRY(ncclAllGather(start_of(tensor, own),
                               start_of(tensor, ranges.front()),
                               bytes_of(tensor, own),
                               ncclUint8,
                               comm,
                               channel.stream().stream()));
    });
}

}  // namespace

void launch_nccl_reduce_scatter(NcclChannel& channel,
                                const at::Tensor& tensor,
                                const std::vector<OwnedRange>& ranges) {
    const ncclDataType_t type = nccl_type(tensor.scalar_type());
    const std::vector<OwnedRange> all = joined(ranges);
    if (are_even(all, channel.size()))
        return launch_even_reduce_scatter(channel, tensor, type, all);
    launch_groups(channel, all, [&](ncclComm_t comm, const OwnedRange& range) {
        std::byte* const values = start_of(tensor, range);
        NCCL_TRY(ncclReduce(values,
                            values,
                            static_cast<std::size_t>(range.length),
                            type,
                            ncclSum,
                            range.owner,
                            comm,
                            channel.stream().stream()));
    });
}

void launch_nccl_all_gather(NcclChannel& channel,
                            const at::Tensor& tensor,
                            const std::vector<OwnedRange>& ranges) {
    const std::vector<OwnedRange> all = joined(ranges);
    if (are_even(all, channel.size()))
        return launch_even_all_gather(channel, tensor, all);
    launch_groups(channel, all, [&](ncclComm_t comm, const OwnedRange& range) {
        std::byte* const bytes = start_of(tensor, range);
        NCCL_TRY(ncclBroadcast(bytes,
                               bytes,
                               bytes_of(tensor, range),
                               ncclUint8,
                               range.owner,
                               comm,
                               channel.stream().stream()));
    });
}

}  // namespace hetseq
