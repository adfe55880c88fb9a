#include "hetseq/util/process/status_line.hpp"

#include <cstdio>

namespace hetseq {

namespace {

constexpr const char* clear = "\r\033[K";  // to the line's begin, and all that follows there

std::mutex mutex;
bool is_drawn = false;

}  // namespace

void status_line::show(const std::string& text) {
    const std::lock_guard lock{mutex};
    // A single write, since mpirun may insert other output between two.
    const std::string line = clear + text;
    std::fwrite(line.data(), 1, line.size(), stderr);
    is_drawn = true;
}

void status_line::erase() {
    hide();
}

std::unique_lock<std::mutex> status_line::hide() {
    std::unique_lock lock{mutex};
    if (is_drawn)
        std::fputs(clear, stderr);
    is_drawn = false;
    return lock;
}

}  // namespace hetseq
