#include "hetseq/util/files/atomic_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <unistd.h>

#include "hetseq/util/files/temporary_name.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"

#include "util/process/posix_try.hpp"
#include <fcntl.h>

namespace hetseq {

namespace {

constexpr std::size_t alignment = 4096;  // that file systems ask for, bytes
constexpr std::size_t buffer_bytes = 1 << 20;
constexpr std::uint64_t most_unsynced = 64 << 20;  // bytes in the page cache

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
    const UniqueHandle<detail::FileDescriptorTraits> descriptor{
        HETSEQ_POSIX_TRY(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder)};
    HETSEQ_POSIX_TRY(::fsync(descriptor.get()), folder);
}

void detail::FileDescriptorTraits::close(int& descriptor) noexcept {
    ::close(descriptor);
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_{std::move(path)},
      temporary_{temporary_beside(path_)},
      file_{HETSEQ_POSIX_TRY(
          ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666),
          path_)},
      buffer_{static_cast<std::byte*>(std::aligned_alloc(alignment, buffer_bytes))} {
    if (!buffer_)
        throw std::bad_alloc();
}

AtomicFile::~AtomicFile() {
    if (!is_named_)
        ::unlink(temporary_.c_str());
}

void AtomicFile::Free::operator()(std::byte* memory) const noexcept {
    std::free(memory);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
    const auto* next = static_cast<const std::byte*>(data);
    while (bytes > 0) {
        const std::size_t taken = std::min(bytes, buffer_bytes - buffered_);
        std::memcpy(buffer_.get() + buffered_, next, taken);
        buffered_ += taken;
        next += taken;
        bytes -= taken;
        if (buffered_ == buffer_bytes)
            flush();
    }
}

void AtomicFile::flush() {
    hash_.update(buffer_.get(), buffered_);
    const bool direct = buffered_ == buffer_bytes && pass_by_cache(true);
    if (!direct)
        pass_by_cache(false);
    write_out(buffer_.get(), buffered_);
    bytes_ += buffered_;
    unsynced_ += direct ? 0 : buffered_;
    buffered_ = 0;
    if (unsynced_ >= most_unsynced)
        sync();
    activity::progress();  // gigabytes may take minutes
}

void AtomicFile::write_out(const std::byte* data, std::size_t bytes) {
    while (bytes > 0) {
        ssize_t written = ::write(file_.get(), data, bytes);
        if (written < 0 && errno == EINVAL && pass_by_cache(false))  // not so on this file system
            written = ::write(file_.get(), data, bytes);
        HETSEQ_POSIX_TRY(written, path_);
        data += written;
        bytes -= static_cast<std::size_t>(written);
        if (bytes > 0)
            pass_by_cache(false);  // what is left is not aligned
    }
}

// Piece by piece, since the last call would otherwise take minutes without a sign of life.
void AtomicFile::sync() {
    HETSEQ_POSIX_TRY(::fsync(file_.get()), path_);
    unsynced_ = 0;
}

bool AtomicFile::pass_by_cache(bool on) const noexcept {
    const int flags = ::fcntl(file_.get(), F_GETFL);
    return flags >= 0 &&
           ::fcntl(file_.get(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

void AtomicFile::finish() {
    HETSEQ_ASSERT(file_);
    fault_point("file", activity::now().update);
    flush();
    sync();
    file_.reset();
    buffer_.reset();
}

FileDigest AtomicFile::commit(const std::function<void()>& before_naming) {
    HETSEQ_ASSERT(!is_named_);
    if (file_)
        finish();
    if (before_naming)
        before_naming();
    HETSEQ_POSIX_TRY(std::rename(temporary_.c_str(), path_.c_str()), path_);
    is_named_ = true;
    sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
    return {bytes_, hash_.digest()};
}

FileDigest write_atomically(const std::filesystem::path& path, std::string_view content) {
    AtomicFile file{path};
    file.write(content);
    return file.commit();
}

}  // namespace hetseq
