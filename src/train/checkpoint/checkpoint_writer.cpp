#include "hetseq/train/checkpoint/checkpoint_writer.hpp"

#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/mpi/peer_transfers.hpp"

#include "checkpoint_copies.hpp"
#include "own_files.hpp"

namespace hetseq {

namespace {

constexpr std::size_t numbers_a_file = 3;
constexpr std::chrono::milliseconds between_looks{2};

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
      copies_{std::make_unique<CheckpointCopies>(
          files_, world_.rank(), world_.size(), !options.copies)},
      any_lends_{world_.all_reduce(std::int64_t{copies_->lends()}, ReduceOp::max) != 0},
      transfers_{
          std::make_unique<PeerTransfers>(world_, copies_->transfers(), PeerTransfers::Options{})},
      options_{options} {}

// MPI keeps what it may still read.
CheckpointWriter::~CheckpointWriter() {
    if (std::uncaught_exceptions() > 0) {
        is_abandoned_ = true;
        transfers_->abandon();
    }
    if (ended_.valid())
        ended_.wait();
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
    copies_->follow(files_, world_.rank(), *transfers_);
}

void CheckpointWriter::start(const TrainingState& state, CheckpointReason reason) {
    advance(Wait::yes);
    begin_ = monotonic_seconds();
    last_update_ = state.progress.updates;
    best_update_ = state.progress.best_update;
    reason_ = reason;
    copies_->mark();
    Steps steps;
    copied_ = steps.copied.get_future();
    written_ = steps.written.get_future();
    gathered_ = steps.gathered.get_future();
    auto work = [this,
                 steps = std::move(steps),
                 text = world_.rank() == 0 ? training_state_json(state) : std::string()]() mutable {
        return Outcome{save(std::move(steps), text), monotonic_seconds()};
    };
    const bool may_use_thread = options_.threads_may_call_mpi || world_.size() == 1;
    ended_ = may_use_thread ? start_in_thread(std::move(work)) : run_now(std::move(work));
}

// Returns why the checkpoint is not saved; empty: it is. Whatever step it comes to, whoever waits
// for a step goes on when it returns.
std::string CheckpointWriter::save(Steps steps, const std::string& state) {
    const activity::Helper::Thread helps(helper_);
    std::vector<double> digests(numbers_a_file * files_.size() + 1, 0);
    FileDigest of_state;
    try {
        const std::vector<FileDigest> written = write(steps.copied, state);
        for (std::size_t i = 0; i < files_.size(); ++i) {
            double* const numbers = digests.data() + numbers_a_file * i;
            numbers[0] = static_cast<double>(written[i].bytes);
            numbers[1] = static_cast<double>(written[i].xxh64 >> 32);
            numbers[2] = static_cast<double>(written[i].xxh64 & 0xffffffffU);
        }
        of_state = written.back();
    } catch (const CommError&) {  // the ranks are no longer in step
        throw;
    } catch (const std::exception& error) {
        report(error);
        digests.back() = 1;
    }
    steps.written.set_value();
    gather(digests);
    steps.gathered.set_value();
    return name(digests, of_state);
}

// Other ranks wait for the parts that this one holds: it sends them, and takes theirs, also where
// it has failed. `state` is empty on other ranks than 0.
std::vector<FileDigest> CheckpointWriter::write(std::promise<void>& copied,
                                                const std::string& state) {
    std::filesystem::path folder;
    std::optional<OwnFiles> files;
    std::exception_ptr failure;
    try {
        copy(copied);
        fault_point("checkpoint_write", last_update_);
        folder = folder_.begin(last_update_);
        files.emplace(files_, folder, copies_->writers(), world_.rank());
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
    return copied_.valid() && !is_ready(any_lends_ ? gathered_ : copied_);
}

double CheckpointWriter::wait_for_copy() {
    if (!copied_.valid())
        return 0;
    const double begin = monotonic_seconds();
    if (any_lends_)
        wait_for_files();
    else
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
        if (world_.rank() == 0 && last_is_timed())
            folder_.unmark_timed(last_update_);
    });
    reason_ = CheckpointReason::other;
}

void CheckpointWriter::advance(Wait wait) {
    if (!ended_.valid())
        return;
    if (wait == Wait::yes)
        wait_for_end();
    if (is_ready(ended_))
        end(ended_.get());
}

void CheckpointWriter::wait_for_end() {
    wait_for_files();
    helper_.wait(ended_);
}

// Those of all ranks. Its thread's slow work is no stall of this rank, nor is that of other ranks.
void CheckpointWriter::wait_for_files() {
    helper_.wait(written_);
    const activity::Waiting waiting;
    gathered_.wait();
}

// Sums them over the ranks, each of which has its own.
void CheckpointWriter::gather(std::vector<double>& digests) {
    const activity::Waiting waiting;
    HostRequest sum = world_.start_all_reduce(digests, ReduceOp::sum);
    while (!sum.test()) {
        if (is_abandoned_)
            throw CommError("a checkpoint was abandoned", "this rank is ending");
        std::this_thread::sleep_for(between_looks);
    }
}

// All files are written, by what `digests` say; rank 0 gives the folder its name.
std::string CheckpointWriter::name(const std::vector<double>& digests, const FileDigest& of_state) {
    const auto failed = static_cast<std::int64_t>(digests.back());
    if (failed > 0) {
        if (world_.rank() == 0)
            folder_.abandon(last_update_);
        return count_text(failed, "rank") + " could not write their files, as the log says";
    }
    if (world_.rank() != 0)
        return "";
    Manifest manifest;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const double* const numbers = digests.data() + numbers_a_file * i;
        manifest.files[files_[i].name] = {
            static_cast<std::uint64_t>(numbers[0]),
            static_cast<std::uint64_t>(numbers[1]) << 32 | static_cast<std::uint64_t>(numbers[2])};
    }
    manifest.files[TrainingState::file_name] = of_state;
    try {
        commit(manifest);
    } catch (const std::exception& error) {
        report(error);
        folder_.abandon(last_update_);
        return message_of(error);
    }
    return "";
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

// Earlier checkpoints are still there.
void CheckpointWriter::report(const std::exception& error) const {
    log::here(log::Level::error,
              "the checkpoint of update " + std::to_string(last_update_) +
                  " is not saved: " + message_of(error));
}

void CheckpointWriter::end(const Outcome& outcome) {
    failure_ = outcome.failure;
    failures_ = failure_.empty() ? 0 : failures_ + 1;
    if (failure_.empty())
        seconds_ = outcome.at - begin_;
    if (failure_.empty() && world_.rank() == 0)
        complete_ = last_update_;
}

}  // namespace hetseq
