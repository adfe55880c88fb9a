#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hetseq {

/// Exit codes of the program, the same on every rank (docs/exit-codes.md).
enum class ExitCode : int {
    finished = 0,
    usage = 64,
    bad_data = 65,
    missing_input = 66,
    internal = 70,
    device = 71,  // GPU or communication
    io = 74,
    stopped = 75,  // stopped early with a valid checkpoint
    config = 78,
};

/// The text of an error: the problem, the reason, and what to do about it.
struct Explanation {
    std::string problem;
    std::string why;         // may be empty
    std::string what_to_do;  // may be empty

    /// "problem (why): what to do". Control characters are shown as "\x1b", and parts above 4 KiB
    /// are cut.
    std::string text() const;
};

/// Base of all errors hetseq throws; `main` prints `what()` once and exits with `code()`.
class Error : public std::runtime_error {
public:
    Error(ExitCode code, const Explanation& explanation)
        : std::runtime_error(explanation.text()), code_{code} {}
    /// For an error whose text is complete already (one that another rank reported).
    Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_{code} {}
    ExitCode code() const noexcept { return code_; }

private:
    ExitCode code_;
};

/// What to tell of `error`: hetseq's own errors as they are, a lack of memory or threads with what
/// to do about it, others without the stack frames that LibTorch appends.
std::string message_of(const std::exception& error);

/// One line of what `error` says, as the reason of an error that wraps it: without the place in
/// LibTorch's sources.
std::string reason_of(const std::exception& error);

/// What to do where a process cannot get memory.
std::string more_memory_advice();

namespace detail {
template <ExitCode Code>
class TypedError final : public Error {
public:
    explicit TypedError(const std::string& problem,
                        const std::string& why = {},
                        const std::string& what_to_do = {})
        : Error(Code, Explanation{problem, why, what_to_do}) {}
};
}  // namespace detail

using BadUsage = detail::TypedError<ExitCode::usage>;              // the command line
using BadConfig = detail::TypedError<ExitCode::config>;            // options and their combination
using BadData = detail::TypedError<ExitCode::bad_data>;            // a file's contents
using MissingInput = detail::TypedError<ExitCode::missing_input>;  // a file that is not there
using IoError = detail::TypedError<ExitCode::io>;                  // reading or writing failed
using DeviceError = detail::TypedError<ExitCode::device>;          // a GPU
using CommError = detail::TypedError<ExitCode::device>;            // MPI or NCCL
using InternalError = detail::TypedError<ExitCode::internal>;      // our own mistake

namespace detail {
[[noreturn]] void fail_assertion(const char* condition, const char* file, int line);
}

}  // namespace hetseq

/// Always on. For conditions that only a mistake in hetseq can violate.
#define HETSEQ_ASSERT(condition)                                              \
    do {                                                                      \
        if (!(condition))                                                     \
            ::hetseq::detail::fail_assertion(#condition, __FILE__, __LINE__); \
    } while (false)
