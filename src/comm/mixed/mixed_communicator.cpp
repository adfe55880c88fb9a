#include "mixed_communicator.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"

#include "comm/communicators.hpp"
#include "comm/joined_ranges.hpp"

namespace hetseq {

namespace {

// A rank on a CPU: it meets the speakers of the groups, and is numbered as in the job.
class MixedCpuCommunicator final : public Communicator {
public:
    MixedCpuCommunicator(MixedPlace place,
                         std::unique_ptr<Communicator> meeting,
                         std::int64_t piece_bytes)
        : place_{std::move(place)}, meeting_{std::move(meeting)}, piece_bytes_{piece_bytes} {}

    int rank() const noexcept override { return place_.rank; }
    int size() const noexcept override { return place_.size; }
    at::Device device() const noexcept override { return at::kCPU; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        return meeting_->start_all_reduce_sum(std::move(tensor));
    }
    std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor tensor,
                                                   std::vector<OwnedRange> ranges) override {
        return meeting_->start_reduce_scatter_sum(std::move(tensor),
                                                  meeting_ranges(place_.groups, ranges));
    }
    std::unique_ptr<Work> start_all_gather(at::Tensor tensor,
                                           std::vector<OwnedRange> ranges) override {
        return meeting_->start_all_gather(std::move(tensor), meeting_ranges(place_.groups, ranges));
    }
    void broadcast(at::Tensor tensor, int root) override {
        for (const at::Tensor& piece : pieces_of(tensor, piece_bytes_))
            meeting_->broadcast(piece, place_.groups.meeting_rank_of(root));
    }

private:
    MixedPlace place_;
    std::unique_ptr<Communicator> meeting_;
    std::int64_t piece_bytes_;  // of a broadcast: the speakers have no more host memory for it
};

void check_threads(ThreadSupport threads) {
    if (threads == ThreadSupport::single || threads == ThreadSupport::funneled)
        throw CommError("this MPI takes calls of one thread alone",
                        std::string(to_string(threads)) + "; gradients go through host memory",
                        "use an MPI with MPI_THREAD_MULTIPLE, or devices of one kind");
}

}  // namespace

std::vector<at::Tensor> pieces_of(const at::Tensor& tensor, std::int64_t bytes) {
    const std::int64_t most =
        std::max<std::int64_t>(bytes / static_cast<std::int64_t>(tensor.element_size()), 1);
    const at::Tensor values = tensor.view(-1);
    std::vector<at::Tensor> pieces;
    for (std::int64_t begin = 0; begin < values.numel(); begin += most)
        pieces.push_back(values.narrow(0, begin, std::min(most, values.numel() - begin)));
    return pieces;
}

std::vector<OwnedRange> meeting_ranges(const DeviceGroups& groups,
                                       const std::vector<OwnedRange>& ranges) {
    std::vector<OwnedRange> met;
    for (const OwnedRange& range : ranges)
        add_joined(met, {groups.meeting_rank_of(range.owner), range.begin, range.length});
    return met;
}

std::unique_ptr<Communicator> make_mixed_communicator(const HostComm& world,
                                                      const DeviceGroups& groups,
                                                      at::Device device,
                                                      ThreadSupport threads,
                                                      const CommunicatorOptions& options) {
    agree_on(world, [&] { check_threads(threads); });
    const MixedPlace place{groups, world.rank(), world.size()};
    const int speaker = groups.speaker_of(world.rank());
    const bool meets = speaker == world.rank();
    const HostComm meeting = world.split(meets ? 0 : 1);
    const HostComm group = world.split(speaker);
    std::unique_ptr<Communicator> communicator;
    if (device.is_cpu()) {
        communicator = std::make_unique<MixedCpuCommunicator>(
            place,
            make_mpi_communicator(meeting, threads, options, groups.meeting()),
            options.largest_bytes);
        agree(world, nullptr);
    } else {
        auto speaking =
            meets ? std::make_shared<MpiCollectives>(meeting, options.deadline, groups.meeting())
                  : nullptr;
        communicator = agree_on(world, [&] {
            return join_mixed_gpus(place, group, device, std::move(speaking), threads, options);
        });
        HETSEQ_ASSERT(communicator != nullptr);
    }
    // Pinned host memory for a bucket, while there is plenty.
    const std::int64_t count =
        std::max<std::int64_t>(options.largest_bytes / std::int64_t{sizeof(float)}, 1);
    communicator->all_reduce_sum(at::zeros({count}, at::TensorOptions(at::kFloat).device(device)));
    return communicator;
}

}  // namespace hetseq
