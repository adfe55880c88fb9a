#include "hetseq/app/standard_streams.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "hetseq/util/error.hpp"

#include <fcntl.h>

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

void check_standard_output() {
    errno = 0;
    const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    const bool reader_left = errno == EPIPE;
    if (failed && !reader_left)
        throw IoError("cannot write to standard output",
                      errno != 0 ? std::strerror(errno) : "an earlier write failed",
                      "send it to a place with free space");
}

}  // namespace hetseq
