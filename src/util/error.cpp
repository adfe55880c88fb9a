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

// LibTorch's allocator throws a plain error, whose first words name its source.
std::size_t allocator_in(const std::string& text) {
    return text.find("DefaultCPUAllocator: ");
}

// What the system refuses to give; empty where `error` is something else.
std::string lack_of_resources(const std::exception& error) {
    if (const auto* system = dynamic_cast<const std::system_error*>(&error);
        system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
        return Explanation{"this process cannot get another thread",
                           error.what(),
                           "raise its limits (ulimit -u and -v, the job's memory and processes)"}
            .text();
    if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr &&
        allocator_in(error.what()) == std::string::npos)
        return "";
    return Explanation{
        "this process cannot get more memory", reason_of(error), more_memory_advice()}
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
    if (dynamic_cast<const Error*>(&error) != nullptr)
        return text;  // may quote what other errors are known by
    if (const std::string lack = lack_of_resources(error); !lack.empty())
        return lack;
    return text.substr(0, text.find("\nException raised from "));
}

std::string reason_of(const std::exception& error) {
    const std::string text = error.what();
    const std::size_t allocator = allocator_in(text);
    const std::size_t begin = allocator == std::string::npos ? 0 : allocator;
    return text.substr(begin, text.find('\n', begin) - begin);
}

std::string more_memory_advice() {
    return "raise its limit (ulimit -v, the job's memory), or give it less to hold: smaller "
           "micro-batches, fewer ranks on this host";
}

namespace detail {

void fail_assertion(const char* condition, const char* file, int line) {
    throw InternalError("internal error: " + std::string(condition) + " does not hold",
                        std::string(file) + ":" + std::to_string(line),
                        "please report this with the command line and the log");
}

}  // namespace detail

}  // namespace hetseq
