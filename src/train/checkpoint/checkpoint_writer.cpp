#include "hetseq/train/checkpoint/checkpoint_writer.hpp"

#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/mpi/peer_transfers.hpp"

#include "checkpoint_copies.hpp"
#include "own_files.hpp"

namespace hetseq {

namespace {

constexpr std::size_t numbers_a_file = 3;

template <class T>
bool is_ready(const std::future<T>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

template <class Work>
std::future<std::invoke_result_t<Work>> run_now(Work work) {
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    task();
    return task.get_future();
}

// Like std::async. If no thread can be started, the work is done before it returns: other ranks may
// wait for it.
template <class Work>
std::future<std::invoke_result_t<Work>> start_in_thread(Work work) {
    const auto shared = std::make_shared<Work>(std::move(work));
    try {
        return std::async(std::launch::async, [shared] { return (*shared)(); });
    } catch (const std::system_error&) {
        return run_now([shared] { return (*shared)(); });
    }
}

std::set<std::int64_t> updates_in(const CheckpointFolder& folder) {
    std::set<std::int64_t> updates;
    for (const CheckpointFolder::Entry& entry : folder.list())
        updates.insert(entry.update);
    return updates;
}

}  // namespace

CheckpointWriter::CheckpointWriter(const HostComm& world,
                                   CheckpointFolder folder,
                                   std::vector<CheckpointFile> files,
                                   const Options& options)
    : world_{world.duplicate()},
      folder_{std::move(folder)},
      files_{std::move(files)},
      copies_{std::make_unique<CheckpointCopies>(files_, world_.rank(), world_.size())},
      transfers_{
          std::make_unique<PeerTransfers>(world_, copies_->transfers(), PeerTransfers::Options{})},
      options_{options} {}

// MPI keeps what it may still read.
CheckpointWriter::~CheckpointWriter() {
    if (std::uncaught_exceptions() > 0)
        transfers_->abandon();
    if (written_.valid())
        written_.wait();
    if (transfers_->incomplete())
        static_cast<void>(copies_.release());
}

std::int64_t CheckpointWriter::bytes() const {
    std::int64_t sum = 0;
    for (const CheckpointFile& file : files_)
        sum += file.bytes();
    return sum;
}

void CheckpointWriter::use(std::vector<CheckpointFile> files) {
    advance(Wait::yes);
    files_ = std::move(files);
    copies_->follow(files_, world_.rank());
}

void CheckpointWriter::start(const TrainingState& state, CheckpointReason reason) {
    advance(Wait::yes);
    begin_ = monotonic_seconds();
    last_update_ = state.progress.updates;
    best_update_ = state.progress.best_update;
    reason_ = reason;
    copies_->mark();
    std::promise<void> copied;
    copied_ = copied.get_future();
    auto work = [this,
                 copied = std::move(copied),
                 text = world_.rank() == 0 ? training_state_json(state) : std::string()]() mutable {
        return save(copied, text);
    };
    const bool may_use_thread = options_.threads_may_call_mpi || !transfers_->between_ranks();
    written_ = may_use_thread ? start_in_thread(std::move(work)) : run_now(std::move(work));
    stage_ = Stage::writing;
}

// Other ranks wait for the parts that this one holds: it sends them, and takes theirs, also where
// it has failed. `state` is empty on other ranks than 0.
std::vector<FileDigest> CheckpointWriter::save(std::promise<void>& copied,
                                               const std::string& state) {
    const activity::Helper::Thread helps(helper_);
    std::filesystem::path folder;
    std::optional<OwnFiles> files;
    std::exception_ptr failure;
    try {
        copy(copied);
        fault_point("checkpoint_write", last_update_);
        folder = folder_.begin(last_update_);
        files.emplace(files_, folder, world_.rank(), world_.size());
        if (transfers_->between_ranks())
            fault_point("checkpoint_collect", last_update_);
    } catch (...) {
        failure = std::current_exception();
    }
    transfers_->move([&](std::size_t transfer, std::span<const std::byte> bytes) {
        if (const std::size_t file = copies_->file_of(transfer); !failure && file < files_.size())
            files->write(file, bytes);
    });
    if (failure)
        std::rethrow_exception(failure);
    std::vector<FileDigest> digests = files->finish();
    if (!state.empty())
        digests.push_back(write_atomically(folder / TrainingState::file_name, state));
    return digests;
}

// Sets `copied` in any case, since the rank waits for it before its next optimizer step.
void CheckpointWriter::copy(std::promise<void>& copied) {
    try {
        fault_point("checkpoint_copy", last_update_);
        copies_->copy();
    } catch (...) {
        copied.set_exception(std::current_exception());
        throw;
    }
    copied.set_value();
}

bool CheckpointWriter::is_copying() const {
    return copied_.valid() &&
           copied_.wait_for(std::chrono::seconds{0}) != std::future_status::ready;
}

double CheckpointWriter::wait_for_copy() {
    if (!copied_.valid())
        return 0;
    const double begin = monotonic_seconds();
    helper_.wait(copied_);
    copied_ = {};
    return 1000 * (monotonic_seconds() - begin);
}

void CheckpointWriter::poll() {
    advance(Wait::no);
    if (failures_ >= options_.most_failures)
        throw IoError(std::to_string(failures_) + " checkpoints in a row could not be written",
                      failure_,
                      "mend that, and start again");
}

void CheckpointWriter::finish() {
    advance(Wait::yes);
    agree_on(world_, [&] {
        folder_.require_change();
        if (!failure_.empty())
            throw IoError(
                "the last checkpoint could not be written", failure_, "mend that, and start again");
    });
}

void CheckpointWriter::advance(Wait wait) {
    if (stage_ == Stage::writing && wait == Wait::yes)
        helper_.wait(written_);
    if (stage_ == Stage::writing && is_ready(written_))
        end_writing();
    if (stage_ == Stage::gathering) {
        if (wait == Wait::yes)
            gathered_.wait();
        if (gathered_.test())
            end_gathering();
    }
    if (stage_ == Stage::committing && wait == Wait::yes)
        helper_.wait(committed_);
    if (stage_ == Stage::committing && is_ready(committed_))
        end_committing();
}

void CheckpointWriter::end_writing() {
    digests_.assign(numbers_a_file * files_.size() + 1, 0);
    try {
        const std::vector<FileDigest> digests = written_.get();
        for (std::size_t i = 0; i < files_.size(); ++i) {
            double* const numbers = digests_.data() + numbers_a_file * i;
            numbers[0] = static_cast<double>(digests[i].bytes);
            numbers[1] = static_cast<double>(digests[i].xxh64 >> 32);
            numbers[2] = static_cast<double>(digests[i].xxh64 & 0xffffffffU);
        }
        if (world_.rank() == 0)
            state_digest_ = digests.back();
    } catch (const CommError&) {  // the ranks are no longer in step
        stage_ = Stage::idle;
        throw;
    } catch (const std::exception& error) {
        report(error);
        digests_.back() = 1;
    }
    gathered_ = world_.start_all_reduce(digests_, ReduceOp::sum);
    stage_ = Stage::gathering;
}

void CheckpointWriter::end_gathering() {
    const auto failed = static_cast<std::int64_t>(digests_.back());
    if (failed > 0) {
        if (world_.rank() == 0)
            folder_.abandon(last_update_);
        end(std::to_string(failed) + " ranks could not write their files, as they said");
        return;
    }
    if (world_.rank() != 0) {
        end("");
        return;
    }
    Manifest manifest;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const double* const numbers = digests_.data() + numbers_a_file * i;
        manifest.files[files_[i].name] = {
            static_cast<std::uint64_t>(numbers[0]),
            static_cast<std::uint64_t>(numbers[1]) << 32 | static_cast<std::uint64_t>(numbers[2])};
    }
    manifest.files[TrainingState::file_name] = state_digest_;
    committed_ = start_in_thread([this, manifest = std::move(manifest)] {
        const activity::Helper::Thread helps(helper_);
        commit(manifest);
    });
    stage_ = Stage::committing;
}

void CheckpointWriter::commit(const Manifest& manifest) {
    fault_point("checkpoint_commit", last_update_);
    look_for_known();
    if (reason_ == CheckpointReason::clock)
        folder_.mark_timed(last_update_);
    folder_.commit(last_update_, manifest);
    folder_.prune(options_.keep_last, best_update_);
    known_ = updates_in(folder_);
}

void CheckpointWriter::look_for_known() {
    const std::set<std::int64_t> there = updates_in(folder_);
    std::vector<std::string> gone;
    for (const std::int64_t update : known_)
        if (there.count(update) == 0 && removed_.insert(update).second)
            gone.push_back(std::to_string(update));
    if (!gone.empty())
        log::warn("somebody removed checkpoints from " + folder_.path().string() +
                  " while the run goes on: of update " + join(gone, ", "));
}

void CheckpointWriter::report_removed() const {
    if (removed_.empty())
        return;
    std::vector<std::string> updates;
    for (const std::int64_t update : removed_)
        updates.push_back(std::to_string(update));
    log::warn("somebody removed checkpoints while the run went on: of update " +
              join(updates, ", "));
}

void CheckpointWriter::end_committing() {
    std::string failure;
    try {
        committed_.get();
    } catch (const std::exception& error) {
        report(error);
        failure = message_of(error);
        folder_.abandon(last_update_);
    }
    end(failure);
}

// Earlier checkpoints are still there.
void CheckpointWriter::report(const std::exception& error) const {
    log::here(log::Level::error,
              "the checkpoint of update " + std::to_string(last_update_) +
                  " is not saved: " + message_of(error));
}

void CheckpointWriter::end(const std::string& failure) {
    failure_ = failure;
    failures_ = failure.empty() ? 0 : failures_ + 1;
    if (failure.empty())
        seconds_ = monotonic_seconds() - begin_;
    if (failure.empty() && world_.rank() == 0)
        complete_ = last_update_;
    stage_ = Stage::idle;
}

}  // namespace hetseq
