#include "hetseq/train/checkpoint/checkpoint_writer.hpp"

#include <cstring>
#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/model/tensor_types.hpp"

namespace hetseq {

namespace {

constexpr std::size_t numbers_a_file = 3;

template <class T>
bool is_ready(const std::future<T>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

// The memory is filled, so that none of its pages is new when training waits for a copy.
at::Tensor memory_for(const at::Tensor& tensor) {
    return at::zeros(tensor.sizes(),
                     tensor.options().device(at::kCPU).pinned_memory(!tensor.device().is_cpu()));
}

c10::impl::VirtualGuardImpl guard_of(at::Device device) {
    return c10::impl::VirtualGuardImpl(device.type());
}

// The device of the tensors that are not on the CPU.
std::optional<at::Device> device_of(const std::vector<CheckpointFile>& files) {
    for (const CheckpointFile& file : files)
        for (const NamedTensor& stored : file.tensors)
            if (!stored.tensor.device().is_cpu())
                return stored.tensor.device();
    return std::nullopt;
}

// Like std::async. If no thread can be started, the future holds that error.
template <class Work>
std::future<std::invoke_result_t<Work>> start_in_thread(Work work) {
    try {
        return std::async(std::launch::async, std::move(work));
    } catch (const std::system_error&) {
        std::promise<std::invoke_result_t<Work>> failed;
        failed.set_exception(std::current_exception());
        return failed.get_future();
    }
}

std::set<std::int64_t> updates_in(const CheckpointFolder& folder) {
    std::set<std::int64_t> updates;
    for (const CheckpointFolder::Entry& entry : folder.list())
        updates.insert(entry.update);
    return updates;
}

void copy_tensor(const at::Tensor& from, const at::Tensor& to) {
    if (from.device().is_cpu() && from.is_contiguous())
        std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    else
        to.copy_(from, /*non_blocking=*/true);
}

}  // namespace

CheckpointWriter::CheckpointWriter(const HostComm& world,
                                   CheckpointFolder folder,
                                   std::vector<CheckpointFile> files,
                                   const Options& options)
    : world_{world.duplicate()},
      folder_{std::move(folder)},
      files_{std::move(files)},
      copies_(files_.size()),
      options_{options} {
    for (std::size_t i = 0; i < files_.size(); ++i)
        for (const NamedTensor& stored : files_[i].tensors)
            if (is_mine(i))
                copies_[i].push_back(memory_for(stored.tensor));
    if (const auto device = device_of(files_))
        tensors_ready_.emplace(device->type(), c10::EventFlag::PYTORCH_DEFAULT);
}

bool CheckpointWriter::is_mine(std::size_t file) const {
    return checkpoint_owner(file, world_.size()) == world_.rank();
}

std::int64_t CheckpointWriter::bytes() const {
    std::int64_t sum = 0;
    for (const CheckpointFile& file : files_)
        sum += file.bytes();
    return sum;
}

void CheckpointWriter::start(const TrainingState& state) {
    advance(Wait::yes);
    begin_ = monotonic_seconds();
    last_update_ = state.progress.updates;
    best_update_ = state.progress.best_update;
    if (tensors_ready_) {
        const at::Device device = *device_of(files_);
        tensors_ready_->record(guard_of(device).getStream(device));
    }
    std::promise<void> copied;
    copied_ = copied.get_future();
    written_ = start_in_thread(
        [this,
         copied = std::move(copied),
         text = world_.rank() == 0 ? training_state_json(state) : std::string()]() mutable {
            const activity::Helper::Thread helps(helper_);
            copy(copied);
            fault_point("checkpoint_write", last_update_);
            const std::filesystem::path path = folder_.begin(last_update_);
            std::vector<FileDigest> digests = write(path);
            if (!text.empty())
                digests.push_back(write_atomically(path / TrainingState::file_name, text));
            return digests;
        });
    stage_ = Stage::writing;
}

// Sets `copied` in any case, since the rank waits for it before its next optimizer step.
void CheckpointWriter::copy(std::promise<void>& copied) {
    try {
        fault_point("checkpoint_copy", last_update_);
        copy_tensors();
    } catch (...) {
        copied.set_exception(std::current_exception());
        throw;
    }
    copied.set_value();
}

// On a device, the copy runs on a separate stream, beside the device's own work. Autograd must not
// see it: gradients would then be accumulated on that stream for as long as the copies live.
void CheckpointWriter::copy_tensors() {
    const at::NoGradGuard no_grad;
    at::set_num_threads(1);
    std::optional<c10::StreamGuard> on_side;
    if (tensors_ready_) {
        const at::Device device = *device_of(files_);
        on_side.emplace(guard_of(device).getStreamFromGlobalPool(device));
        tensors_ready_->block(on_side->current_stream());
    }
    for (std::size_t i = 0; i < files_.size(); ++i)
        for (std::size_t t = 0; t < copies_[i].size(); ++t) {
            copy_tensor(files_[i].tensors[t].tensor, copies_[i][t]);
            activity::progress();
        }
    if (on_side)
        on_side->current_stream().synchronize();
}

std::vector<FileDigest> CheckpointWriter::write(const std::filesystem::path& folder) const {
    std::vector<FileDigest> digests(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i) {
        if (!is_mine(i))
            continue;
        std::vector<SafetensorData> tensors;
        for (std::size_t t = 0; t < copies_[i].size(); ++t)
            tensors.push_back({files_[i].tensors[t].name,
                               file_type_of(copies_[i][t].scalar_type()),
                               copies_[i][t].sizes().vec(),
                               copies_[i][t].const_data_ptr()});
        digests[i] = write_safetensors(folder / files_[i].name, tensors, {{"format", "pt"}});
    }
    return digests;
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
    stage_ = Stage::idle;
}

}  // namespace hetseq
