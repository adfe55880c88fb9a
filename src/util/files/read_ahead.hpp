#pragma once

#include <cstdint>
#include <filesystem>

namespace hetseq {

/// Asks the kernel for the parts of a file that its reader will come to, further ahead than it
/// looks by itself: a disk, or a parallel file system, gives its full rate to several requests at
/// once. Only advice: nothing fails.
class ReadAhead {
public:
    explicit ReadAhead(const std::filesystem::path& path);
    ~ReadAhead();
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    /// The reader is at this byte.
    void at(std::uint64_t position);

private:
    int descriptor_;
    std::uint64_t asked_ = 0;  // bytes, from the file's beginning
};

}  // namespace hetseq
