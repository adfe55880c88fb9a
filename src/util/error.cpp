#include "hetseq/util/error.hpp"

namespace hetseq {

std::string Explanation::text() const {
    std::string text = problem;
    if (!why.empty())
        text += " (" + why + ")";
    if (!what_to_do.empty())
        text += (why.empty() ? ": " : " ") + what_to_do;
    return text;
}

std::string message_of(const std::exception& error) {
    const std::string text = error.what();
    return text.substr(0, text.find("\nException raised from "));
}

namespace detail {

void fail_assertion(const char* condition, const char* file, int line) {
    throw InternalError("internal error: " + std::string(condition) + " does not hold",
                        std::string(file) + ":" + std::to_string(line),
                        "please report this with the command line and the log");
}

}  // namespace detail

}  // namespace hetseq
