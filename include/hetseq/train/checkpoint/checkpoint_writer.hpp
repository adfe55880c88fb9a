#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"

namespace hetseq {

/// Why a checkpoint is saved. Of those for the clock alone, fewer are kept.
enum class CheckpointReason { clock, other };

class CheckpointCopies;
class PeerTransfers;

/// Saves checkpoints while training goes on. A thread copies what this rank gives to the files into
/// memory that is taken once. Then it writes this rank's files, with the parts of tensors that
/// other ranks hold and send, and sends its own parts. When all ranks have written, rank 0's gives
/// the folder its name, at once: a checkpoint is complete as soon as its last file is. A rank
/// without memory for copies writes and sends the tensors themselves: then no rank's may change
/// before all files are written. All ranks call the same members in the same order from one thread.
class CheckpointWriter {
public:
    struct Options {
        std::int64_t keep_last = 0;         // 0: all
        int most_failures = 3;              // in a row, after which `poll` and `start` throw
        bool threads_may_call_mpi = false;  // MPI gave MPI_THREAD_MULTIPLE
        bool copies = true;                 // of this rank's tensors in the host's memory
    };

    /// Collective. `files` are views of tensors that outlive the writer.
    CheckpointWriter(const HostComm& world,
                     CheckpointFolder folder,
                     std::vector<CheckpointFile> files,
                     const Options& options);
    /// Waits for the thread. While an exception unwinds, it waits for no other rank.
    ~CheckpointWriter();
    CheckpointWriter(const CheckpointWriter&) = delete;
    CheckpointWriter& operator=(const CheckpointWriter&) = delete;

    /// Collective. From now on saves `files`: the first ones of the constructor's, whose tensors
    /// lie elsewhere. Waits for an earlier checkpoint that is not complete yet.
    void use(std::vector<CheckpointFile> files);
    /// Collective. Starts saving `state` (rank 0's counts) and the tensors as they are now. Waits
    /// for an earlier checkpoint that is not complete yet. Where threads may not call MPI and there
    /// are several ranks, the checkpoint is complete when it returns.
    void start(const TrainingState& state, CheckpointReason reason = CheckpointReason::other);
    /// True until the last one is complete, or was given up.
    bool is_under_way() const noexcept { return ended_.valid(); }
    /// Collective. Waits until then.
    void wait() { advance(Wait::yes); }
    /// Whether the last one was given up.
    bool has_failed() const noexcept { return !failure_.empty(); }
    /// Nobody may write to the tensors before this returns. It also returns if the copy failed; the
    /// checkpoint is then not saved. Returns the time it waited [ms].
    double wait_for_copy();
    /// True if that would wait.
    bool is_copying() const;
    /// Collective, never waits. Advances the checkpoint in progress. A failure is reported, and
    /// earlier checkpoints stay; after several failures in a row it throws IoError. So `start` and
    /// `finish` do, and all of them throw CommError on a rank that waited in vain for the parts of
    /// another.
    void poll();
    /// Collective. Waits for the checkpoint in progress. Throws IoError on all ranks when it
    /// failed. The last one is the end of a run, and no longer one that the clock alone asked for.
    void finish();

    /// On rank 0, after `finish`: says which checkpoints somebody removed while the run went on.
    void report_removed() const;

    /// The bytes of a checkpoint's tensors.
    std::int64_t bytes() const;
    /// On rank 0, once for each: the update of the last checkpoint that is complete.
    std::optional<std::int64_t> take_complete() { return std::exchange(complete_, std::nullopt); }
    /// Where the checkpoint of that update is, once it is complete.
    std::filesystem::path path_of(std::int64_t update) const { return folder_.of_update(update); }
    /// Update of the last checkpoint started; -1: none.
    std::int64_t last_update() const noexcept { return last_update_; }
    /// Whether the clock alone asked for that one.
    bool last_is_timed() const noexcept { return reason_ == CheckpointReason::clock; }
    /// From the start of the last complete checkpoint to its end on this rank [s]; 0: none yet.
    double seconds() const noexcept { return seconds_; }

private:
    enum class Wait { no, yes };
    // What the job's thread may wait for.
    struct Steps {
        std::promise<void> copied, written, gathered;
    };

    struct Outcome {
        std::string failure;  // why it is not saved; empty: it is
        double at = 0;        // monotonic clock [s]
    };

    std::string save(Steps steps, const std::string& state);
    std::vector<FileDigest> write(std::promise<void>& copied, const std::string& state);
    void copy(std::promise<void>& copied);
    void gather(std::vector<double>& digests);
    std::string name(const std::vector<double>& digests, const FileDigest& of_state);
    void commit(const Manifest& manifest);
    void advance(Wait wait);
    void wait_for_end();
    void wait_for_files();
    void look_for_known();
    void report(const std::exception& error) const;
    void end(const Outcome& outcome);

    HostComm world_;
    CheckpointFolder folder_;
    std::vector<CheckpointFile> files_;  // that are saved
    std::unique_ptr<CheckpointCopies> copies_;
    bool any_lends_ = false;                    // of all ranks, tensors in place of copies
    std::unique_ptr<PeerTransfers> transfers_;  // of the copies
    Options options_;

    std::int64_t last_update_ = -1;
    std::optional<std::int64_t> complete_;  // on rank 0, not taken yet
    std::int64_t best_update_ = 0;
    CheckpointReason reason_ = CheckpointReason::other;  // of that one
    double begin_ = 0;                // of the checkpoint at work, monotonic clock [s]
    std::set<std::int64_t> known_;    // on rank 0: checkpoints that were there
    std::set<std::int64_t> removed_;  // and those that somebody removed
    activity::Helper helper_;
    std::atomic<bool> is_abandoned_ = false;
    // Below what their thread uses, since it is waited for when they are destroyed.
    std::future<void> copied_, written_, gathered_;  // this rank's tensors, its files, all ranks'
    std::future<Outcome> ended_;
    std::string failure_;  // of the last checkpoint; empty: none
    int failures_ = 0;     // in a row
    double seconds_ = 0;
};

}  // namespace hetseq
