#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

namespace hetseq::fuzz {

/// A file in memory that can be opened by its path, so that no fuzzer waits for a disk.
class MemoryFile {
public:
    explicit MemoryFile(std::string_view content) : descriptor_{::memfd_create("input", 0)} {
        FUZZ_CHECK(descriptor_ >= 0);
        while (!content.empty()) {
            const auto written = ::write(descriptor_, content.data(), content.size());
            FUZZ_CHECK(written > 0);
            content.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    ~MemoryFile() { ::close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
    int descriptor_;
};

}  // namespace hetseq::fuzz
