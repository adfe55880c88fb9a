#include <algorithm>
#include <exception>
#include <utility>

#include "hetseq/util/error.hpp"

#include "comm/nccl/nccl_join.hpp"
#include "comm/nccl/nccl_ranges.hpp"
#include "comm/nccl/nccl_work.hpp"
#include "group_ranges.hpp"
#include "mixed_communicator.hpp"
#include "speaker.hpp"

namespace hetseq {

namespace {

class MixedGpuCommunicator final : public Communicator {
public:
    MixedGpuCommunicator(MixedPlace place,
                         at::Device device,
                         std::shared_ptr<NcclChannel> channel,
                         std::shared_ptr<Speaker> speaker)
        : place_{std::move(place)},
          device_{device},
          channel_{std::move(channel)},
          speaker_{std::move(speaker)} {}

    // While an exception unwinds, the other ranks may not take part any more.
    ~MixedGpuCommunicator() override {
        if (speaker_ != nullptr && std::uncaught_exceptions() > 0)
            speaker_->abandon();
    }
    MixedGpuCommunicator(const MixedGpuCommunicator&) = delete;
    MixedGpuCommunicator& operator=(const MixedGpuCommunicator&) = delete;

    int rank() const noexcept override { return place_.rank; }
    int size() const noexcept override { return place_.size; }
    at::Device device() const noexcept override { return device_; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        check(tensor);
        return speaker_ != nullptr ? speaker_->start_all_reduce_sum(tensor)
                                   : nccl_reduce_and_broadcast(channel_, tensor);
    }
    std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor tensor,
                                                   std::vector<OwnedRange> ranges) override {
        check(tensor);
        GroupRanges passed = group_ranges(group(), ranges);
        if (speaker_ != nullptr)
            return speaker_->start_reduce_scatter_sum(
                tensor, meeting_ranges(place_.groups, ranges), std::move(passed));
        return nccl_work(channel_, tensor, [&] {
            launch_nccl_reduce(*channel_, tensor);
            launch_nccl_all_gather(*channel_, tensor, passed.to_members);
        });
    }
    std::unique_ptr<Work> start_all_gather(at::Tensor tensor,
                                           std::vector<OwnedRange> ranges) override {
        check(tensor);
        GroupRanges passed = group_ranges(group(), ranges);
        if (speaker_ != nullptr)
            return speaker_->start_all_gather(
                tensor, meeting_ranges(place_.groups, ranges), std::move(passed));
        return nccl_work(channel_, tensor, [&] {
            launch_nccl_all_gather(*channel_, tensor, passed.own);
            launch_nccl_all_gather(*channel_, tensor, passed.from_others);
        });
    }

    void broadcast(at::Tensor tensor, int root) override {
        check(tensor);
        const std::vector<int>& group = this->group();
        const auto found = std::find(group.begin(), group.end(), root);
        const int root_in_group =
            found == group.end() ? -1 : static_cast<int>(found - group.begin());
        const auto work = speaker_ != nullptr
                              ? speaker_->start_broadcast(
                                    tensor, root_in_group, place_.groups.meeting_rank_of(root))
                              : nccl_broadcast(channel_, tensor, std::max(root_in_group, 0));
        work->wait();
    }

private:
    const std::vector<int>& group() const { return *place_.groups.group_of(rank()); }
    void check(const at::Tensor& tensor) const {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous());
    }

    MixedPlace place_;
    at::Device device_;
    std::shared_ptr<NcclChannel> channel_;
    std::shared_ptr<Speaker> speaker_;  // null on a rank that is not its group's first
};

}  // namespace

std::unique_ptr<Communicator> join_mixed_gpus(const MixedPlace& place,
                                              const HostComm& group,
                                              at::Device device,
                                              std::shared_ptr<MpiCollectives> meeting,
                                              ThreadSupport threads,
                                              const CommunicatorOptions& options) {
    auto channel =
        join_nccl(group, device, options, [&](const auto& joined, const at::Tensor& tensor) {
            if (group.size() > 1)
                nccl_reduce_and_broadcast(joined, tensor)->wait();
        });
    if (channel == nullptr)
        return nullptr;
    std::shared_ptr<Speaker> speaker;
    if (meeting != nullptr)
        speaker = std::make_shared<Speaker>(
            channel,
            std::move(meeting),
            threads == ThreadSupport::multiple ? RunOn::own_thread : RunOn::caller,
            options.largest_bytes);
    return std::make_unique<MixedGpuCommunicator>(
        place, device, std::move(channel), std::move(speaker));
}

}  // namespace hetseq
