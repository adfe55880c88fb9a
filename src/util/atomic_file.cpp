#include "hetseq/util/atomic_file.hpp"

#include <cstdio>
#include <utility>

#include <unistd.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/fault_point.hpp"

#include "posix_try.hpp"
#include <fcntl.h>

namespace hetseq {

namespace {

std::filesystem::path beside(const std::filesystem::path& path) {
    return path.string() + ".tmp-" + std::to_string(::getpid());
}

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
      temporary_{beside(path_)},
      file_{HETSEQ_POSIX_TRY(
          ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), path_)} {}

AtomicFile::~AtomicFile() {
    if (file_)
        ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
    const auto* next = static_cast<const char*>(data);
    hash_.update(data, bytes);
    bytes_ += bytes;
    while (bytes > 0) {
        const auto written = HETSEQ_POSIX_TRY(::write(file_.get(), next, bytes), path_);
        next += written;
        bytes -= static_cast<std::size_t>(written);
        activity::progress();  // gigabytes may take minutes
    }
}

FileDigest AtomicFile::commit() {
    HETSEQ_ASSERT(file_);
    fault_point("file", activity::now().update);
    HETSEQ_POSIX_TRY(::fsync(file_.get()), path_);
    HETSEQ_POSIX_TRY(std::rename(temporary_.c_str(), path_.c_str()), path_);
    file_.reset();
    sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
    return {bytes_, hash_.digest()};
}

FileDigest write_atomically(const std::filesystem::path& path, std::string_view content) {
    AtomicFile file{path};
    file.write(content);
    return file.commit();
}

}  // namespace hetseq
