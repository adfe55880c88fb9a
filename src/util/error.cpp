#include "hetseq/util/error.hpp"

#include <new>
#include <system_error>

namespace hetseq {

namespace {

constexpr std::size_t longest_part = 4096;  // bytes

// A part may quote a damaged file. Control characters would act on the terminal or end the text, so
// they are shown as \x1b. Very long parts are cut.
std::string readable(const std::string& part) {
    std::string text;
    for (const char c : part.substr(0, longest_part)) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte >= ' ' || c == '\n' || c == '\t') && byte != 0x7f)
            text += c;
        else
            text += {'\\', 'x', "0123456789abcdef"[byte / 16], "0123456789abcdef"[byte % 16]};
    }
    if (part.size() > longest_part)
        text += "... (" + std::to_string(part.size()) + " bytes in all)";
    return text;
}

// What the system refuses to give; empty where `error` is something else. LibTorch's allocator
// throws a plain error, whose first words name its source.
std::string lack_of_resources(const std::exception& error) {
    const std::string text = error.what();
    const auto allocator = text.find("DefaultCPUAllocator: ");
    if (const auto* system = dynamic_cast<const std::system_error*>(&error);
        system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
        return Explanation{"this process cannot get another thread",
                           text,
                           "raise its limits (ulimit -u and -v, the job's memory and processes)"}
            .text();
    if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr && allocator == text.npos)
        return "";
    return Explanation{"this process cannot get more memory",
                       allocator == text.npos
                           ? text
                           : text.substr(allocator, text.find('\n', allocator) - allocator),
                       "raise its limit (ulimit -v, the job's memory), or give it less to hold: "
                       "smaller micro-batches, fewer ranks on this host"}
        .text();
}

}  // namespace

std::string Explanation::text() const {
    std::string text = readable(problem);
    if (!why.empty())
        text += " (" + readable(why) + ")";
    if (!what_to_do.empty())
        text += ": " + readable(what_to_do);
    return text;
}

std::string message_of(const std::exception& error) {
    const std::string text = error.what();
    if (const std::string lack = lack_of_resources(error); !lack.empty())
        return lack;
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
