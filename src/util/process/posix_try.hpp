#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

/// `result` unless it is negative; then IoError with errno's text.
template <class T>
T check_posix(T result, const char* call, const std::filesystem::path& path, const char* where) {
    if (result < 0)
        throw IoError("cannot write " + path.string(),
                      std::string(std::strerror(errno)) + "; " + call + " in " + where,
                      "check the folder's permissions and free space");
    return result;
}

}  // namespace hetseq::detail

#define HETSEQ_DETAIL_TEXT_OF(line) #line
#define HETSEQ_DETAIL_TEXT(line) HETSEQ_DETAIL_TEXT_OF(line)

/// The value of a POSIX call on the file `path` that reports failure by a negative value.
#define HETSEQ_POSIX_TRY(call, path) \
    ::hetseq::detail::check_posix(call, #call, path, __FILE__ ":" HETSEQ_DETAIL_TEXT(__LINE__))
