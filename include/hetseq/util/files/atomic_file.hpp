#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/unique_handle.hpp"

namespace hetseq {

namespace detail {
struct FileDescriptorTraits {
    using type = int;
    static constexpr int null() { return -1; }
    static void close(int& descriptor) noexcept;
};
}  // namespace detail

/// A file that appears under its name complete or not at all. It is written beside its place under
/// a temporary name, synced to disk, and renamed. Without `commit` nothing is left behind and a
/// former file stays. Large files bypass the page cache where the file system allows it. This takes
/// a fraction of the CPU time, which training needs. All members throw IoError.
class AtomicFile {
public:
    explicit AtomicFile(std::filesystem::path path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(const void* data, std::size_t bytes);
    void write(std::string_view text) { write(text.data(), text.size()); }
    /// All is on disk, and the file is closed; only its name is missing. `commit` does it
    /// otherwise.
    void finish();
    /// Returns what was written. If `before_naming` throws, the file does not appear.
    FileDigest commit(const std::function<void()>& before_naming = {});

private:
    void flush();
    void write_out(const std::byte* data, std::size_t bytes);
    void sync();
    bool pass_by_cache(bool on) const noexcept;

    struct Free {
        void operator()(std::byte* memory) const noexcept;
    };

    std::filesystem::path path_, temporary_;
    UniqueHandle<detail::FileDescriptorTraits> file_;
    std::unique_ptr<std::byte, Free> buffer_;
    bool is_named_ = false;
    std::size_t buffered_ = 0;  // bytes
    std::uint64_t bytes_ = 0;
    std::uint64_t unsynced_ = 0;  // bytes
    Xxh64 hash_;
};

/// Makes what was renamed, made or removed in `folder` durable on disk. Throws IoError.
void sync_folder(const std::filesystem::path& folder);

/// Writes `content` to the file `path`, by an AtomicFile.
FileDigest write_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace hetseq
