#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

namespace hetseq::fuzz {

/// A folder of this process, in memory where the machine has /dev/shm, for parsers that take a
/// folder or write beside their file. Removed at exit.
class Folder {
public:
    Folder() {
        const bool has_shm = ::access("/dev/shm", W_OK) == 0;
        std::string name = (has_shm ? "/dev/shm" : "/tmp") + std::string("/hetseq-fuzz-XXXXXX");
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const char* name) const { return path_ / name; }
    void write(const char* name, std::string_view content) const {
        std::ofstream{path_ / name, std::ios::binary | std::ios::trunc} << content;
    }

private:
    std::filesystem::path path_;
};

}  // namespace hetseq::fuzz
