#include "hetseq/util/process/standard_streams.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "hetseq/util/error.hpp"

#include <fcntl.h>
#include <poll.h>

namespace hetseq {

void keep_standard_streams() {
    // Opening takes the lowest free number, which is one of the three as long as one is free.
    for (int descriptor = 0; descriptor <= STDERR_FILENO;) {
        descriptor = ::open("/dev/null", O_RDWR);
        if (descriptor < 0)
            return;  // no /dev/null: nothing better to put there
        if (descriptor > STDERR_FILENO)
            ::close(descriptor);
    }
}

namespace {

[[noreturn]] void throw_unwritten(int error) {
    if (error == EPIPE || has_lost_reader())
        throw ReaderLeft{};
    throw IoError("cannot write to standard output",
                  error != 0 ? std::strerror(error) : "an earlier write failed",
                  "send it to a place with free space");
}

}  // namespace

bool has_lost_reader() noexcept {
    pollfd output{STDOUT_FILENO, 0, 0};
    return ::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

void write_output(std::string_view text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
        throw_unwritten(errno);
}

void check_standard_output() {
    try {
        flush_output();
    } catch (const ReaderLeft&) {  // what was to do is done
    }
}

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        throw_unwritten(errno);
}

}  // namespace hetseq
