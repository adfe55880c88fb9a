#include "read_ahead.hpp"

#include <unistd.h>

#include <fcntl.h>

namespace hetseq {

namespace {

constexpr std::uint64_t request = std::uint64_t{128} << 10;  // the least that a kernel's window is
constexpr std::uint64_t distance = std::uint64_t{32} << 20;

}  // namespace

ReadAhead::ReadAhead(const std::filesystem::path& path)
    : descriptor_{::open(path.c_str(), O_RDONLY | O_CLOEXEC)} {}

ReadAhead::~ReadAhead() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

void ReadAhead::at(std::uint64_t position) {
    for (; asked_ < position + distance; asked_ += request)
        ::posix_fadvise(descriptor_,
                        static_cast<off_t>(asked_),
                        static_cast<off_t>(request),
                        POSIX_FADV_WILLNEED);
}

}  // namespace hetseq
