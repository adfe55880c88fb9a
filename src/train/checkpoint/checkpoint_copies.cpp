#include "checkpoint_copies.hpp"

#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"

#include "own_files.hpp"

namespace hetseq {

namespace {

// The memory is filled, so that none of its pages is new when training waits for a copy.
at::Tensor memory_for(const at::Tensor& tensor) {
    return at::zeros(tensor.sizes(),
                     tensor.options().device(at::kCPU).pinned_memory(!tensor.device().is_cpu()));
}

bool can_be_lent(const CheckpointPart& part) {
    return part.is_trained && part.values.device().is_cpu() && part.values.is_contiguous();
}

c10::impl::VirtualGuardImpl guard_of(at::Device device) {
    return c10::impl::VirtualGuardImpl(device.type());
}

void copy_tensor(const at::Tensor& from, const at::Tensor& to) {
    if (from.device().is_cpu() && from.is_contiguous())
        std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    else
        to.copy_(from, /*non_blocking=*/true);
}

// While one exists, the thread's kernels leave the other cores to training.
class SingleThreaded {
public:
    SingleThreaded() : before_{at::get_num_threads()} { at::set_num_threads(1); }
    ~SingleThreaded() { at::set_num_threads(before_); }
    SingleThreaded(const SingleThreaded&) = delete;
    SingleThreaded& operator=(const SingleThreaded&) = delete;

private:
    int before_;
};

}  // namespace

CheckpointCopies::CheckpointCopies(const std::vector<CheckpointFile>& files,
                                   int rank,
                                   int ranks,
                                   bool lends)
    : lends_{lends}, writers_{checkpoint_owners(files, ranks)} {
    for (std::size_t i = 0; i < files.size(); ++i)
        add_file(i, files[i], rank, writers_[i]);
    followed_ = copies_.size();
    if (device_)
        is_ready_.emplace(device_->type(), c10::EventFlag::PYTORCH_DEFAULT);
}

void CheckpointCopies::add_file(std::size_t index,
                                const CheckpointFile& file,
                                int rank,
                                int writer) {
    for (const std::size_t t : order_in_file(file)) {
        const CheckpointTensor& tensor = file.tensors[t];
        std::int64_t bytes = 0;
        for (const CheckpointPart& part : tensor.parts) {
            const int from = part.holder == CheckpointPart::every_rank ? writer : part.holder;
            const auto part_bytes =
                part.numel * static_cast<std::int64_t>(at::elementSize(tensor.type));
            transfers_.push_back({from, writer, static_cast<std::size_t>(part_bytes), nullptr});
            files_.push_back(index);
            bytes += part_bytes;
            if (from == rank)
                add_copy(part);
        }
        HETSEQ_ASSERT(bytes == tensor.bytes());
    }
}

// Of the last transfer.
void CheckpointCopies::add_copy(const CheckpointPart& part) {
    const at::Tensor& values = part.values;
    HETSEQ_ASSERT(values.defined() && values.nbytes() == transfers_.back().bytes);
    const bool is_lent = lends_ && can_be_lent(part);
    copies_.push_back({values, is_lent ? at::Tensor() : memory_for(values)});
    lent_ += is_lent ? 1 : 0;
    transfers_.back().data = (is_lent ? values : copies_.back().to).const_data_ptr();
    if (!values.device().is_cpu())
        device_ = values.device();
}

void CheckpointCopies::follow(const std::vector<CheckpointFile>& files,
                              int rank,
                              PeerTransfers& transfers) {
    std::size_t transfer = 0;
    followed_ = 0;
    for (const CheckpointFile& file : files)
        for (const std::size_t t : order_in_file(file))
            for (const CheckpointPart& part : file.tensors[t].parts) {
                const std::size_t own = transfer++;
                if (transfers_.at(own).from != rank)
                    continue;
                Copy& copy = copies_[followed_++];
                HETSEQ_ASSERT(part.values.nbytes() == copy.from.nbytes());
                copy.from = part.values;
                if (copy.to.defined())
                    continue;
                HETSEQ_ASSERT(can_be_lent(part));
                transfers.take_from(own, copy.from.const_data_ptr());
            }
}

void CheckpointCopies::mark() {
    if (is_ready_)
        is_ready_->record(guard_of(*device_).getStream(*device_));
}

// On a device, the copy runs on a separate stream. Autograd must not see it: gradients would then
// be accumulated on that stream for as long as the copies live.
void CheckpointCopies::copy() {
    const at::NoGradGuard no_grad;
    const SingleThreaded single_threaded;
    std::optional<c10::StreamGuard> on_side;
    if (is_ready_) {
        on_side.emplace(guard_of(*device_).getStreamFromGlobalPool(*device_));
        is_ready_->block(on_side->current_stream());
    }
    for (std::size_t i = 0; i < followed_; ++i) {
        if (!copies_[i].to.defined())
            continue;
        copy_tensor(copies_[i].from, copies_[i].to);
        activity::progress();
    }
    if (on_side)
        on_side->current_stream().synchronize();
}

}  // namespace hetseq
