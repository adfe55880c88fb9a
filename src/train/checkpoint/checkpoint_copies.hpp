#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include "hetseq/comm/mpi/peer_transfers.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"

namespace hetseq {

/// Copies of what this rank gives to a checkpoint's files: the parts that it alone holds, and in
/// the files that it writes those that every rank holds. All memory is taken by the constructor.
class CheckpointCopies {
public:
    /// `files` are views of tensors that outlive the copies. `lends`: files are written from
    /// trained tensors themselves where they lie in the host's memory, which takes none.
    CheckpointCopies(const std::vector<CheckpointFile>& files, int rank, int ranks, bool lends);

    /// The way of every part from the rank that copies it to the one that writes its file, in the
    /// order of the files' bytes.
    const std::vector<PeerTransfer>& transfers() const noexcept { return transfers_; }
    std::size_t file_of(std::size_t transfer) const { return files_[transfer]; }
    /// By file of the constructor's, the rank that writes it.
    const std::vector<int>& writers() const noexcept { return writers_; }

    /// Whether any of `transfers` is from a tensor itself, which nobody may write to meanwhile.
    bool lends() const noexcept { return lent_ > 0; }

    /// From now on copies the tensors of `files`: the first ones of the constructor's, whose
    /// tensors lie elsewhere, and tells `transfers` where those are that are lent. What belongs to
    /// others is not copied.
    void follow(const std::vector<CheckpointFile>& files, int rank, PeerTransfers& transfers);

    /// `copy` shall take the tensors as they are once the device is done with what it was asked
    /// for.
    void mark();
    /// Copies the tensors, on a device beside its own work; returns when it is done.
    void copy();

private:
    struct Copy {
        at::Tensor from;
        at::Tensor to;  // on the CPU; undefined: `from` is lent
    };

    void add_file(std::size_t index, const CheckpointFile& file, int rank, int writer);
    void add_copy(const CheckpointPart& part);

    bool lends_;
    std::size_t lent_ = 0;  // of the copies
    std::vector<Copy> copies_;
    std::size_t followed_ = 0;  // of them, from the first
    std::vector<PeerTransfer> transfers_;
    std::vector<std::size_t> files_;      // by transfer
    std::vector<int> writers_;            // by file
    std::optional<at::Device> device_;    // of the tensors that are not on the CPU
    std::optional<c10::Event> is_ready_;  // on it
};

}  // namespace hetseq
