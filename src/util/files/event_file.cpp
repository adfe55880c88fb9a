#include "hetseq/util/files/event_file.hpp"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "event_record.hpp"
#include "util/process/posix_try.hpp"
#include <fcntl.h>

namespace hetseq {

namespace {

std::string host() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// TensorBoard reads the files whose names hold "tfevents" in the order of their names, which is
// that of time.
std::filesystem::path new_path(const std::filesystem::path& folder, double wall_time) {
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    if (error)
        throw IoError("cannot make the folder " + folder.string(),
                      error.message(),
                      "check its permissions and free space");
    const std::string name = "events.out.tfevents." +
                             std::to_string(static_cast<std::int64_t>(wall_time)) + "." + host() +
                             "." + std::to_string(::getpid()) + ".";
    for (int count = 0;; ++count)
        if (const auto path = folder / (name + std::to_string(count));
            !std::filesystem::exists(path, error))
            return path;
}

}  // namespace

EventFile::EventFile(std::filesystem::path folder, std::int64_t first_step, double wall_time)
    : folder_{std::move(folder)},
      wall_time_{wall_time},
      pending_{detail::framed(detail::version_event(wall_time)) +
               detail::framed(detail::session_start_event(first_step, wall_time))} {}

void EventFile::add_scalar(std::string_view tag,
                           std::int64_t step,
                           double value,
                           double wall_time) {
    pending_ += detail::framed(detail::scalar_event(tag, step, value, wall_time));
}

bool EventFile::is_gone() const {
    std::error_code unknown;
    return file_ && !std::filesystem::exists(path_, unknown) && !unknown;
}

void EventFile::open() {
    path_ = new_path(folder_, wall_time_);
    file_ = UniqueHandle<detail::FileDescriptorTraits>{HETSEQ_POSIX_TRY(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666), path_)};
}

void EventFile::append(std::size_t& written) {
    while (written < pending_.size())
        written += static_cast<std::size_t>(HETSEQ_POSIX_TRY(
            ::write(file_.get(), pending_.data() + written, pending_.size() - written), path_));
}

void EventFile::flush() {
    if (!file_)
        open();
    std::size_t written = 0;
    try {
        append(written);
    } catch (const IoError&) {
        if (written > 0)  // half a record would make everything after it unreadable
            HETSEQ_POSIX_TRY(::ftruncate(file_.get(), size_), path_);
        throw;
    }
    size_ += static_cast<std::int64_t>(written);
    pending_.clear();
}

}  // namespace hetseq
