#include "hetseq/util/files/regular_file.hpp"

#include <string_view>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

const char* kind_of(fs::file_type type) {
    switch (type) {
        case fs::file_type::fifo:
            return "it is a pipe";
        case fs::file_type::socket:
            return "it is a socket";
        case fs::file_type::directory:
            return "it is a folder";
        default:
            return "it is a device";
    }
}

bool is_stream_of_shell(const fs::path& path) {
    const std::string name = path.string();
    const auto begins = [&](std::string_view with) { return name.rfind(with, 0) == 0; };
    return begins("/dev/fd/") || begins("/proc/self/fd/") || name == "/dev/stdin" ||
           name == "/dev/null";
}

// What is not there is the caller's to report.
bool may_never_end(fs::file_type type) {
    return type != fs::file_type::regular && type != fs::file_type::not_found &&
           type != fs::file_type::none && type != fs::file_type::unknown;
}

void check_kind(const fs::path& path, fs::file_type type) {
    if (may_never_end(type))
        throw BadData(path.string() + " is not a file", kind_of(type), "name a file");
}

fs::file_type type_of(const fs::path& path) {
    std::error_code ignored;
    return fs::status(path, ignored).type();
}

}  // namespace

void check_regular_file(const fs::path& path) {
    check_kind(path, type_of(path));
}

void require_regular_file(const fs::path& path) {
    const fs::file_type type = type_of(path);
    if (type == fs::file_type::not_found)
        throw MissingInput("there is no file " + path.string(), "", "check the path");
    check_kind(path, type);
}

void check_text_file(const fs::path& path) {
    if (!is_stream_of_shell(path))
        check_kind(path, type_of(path));
}

void check_output_file(const fs::path& path, bool may_replace) {
    const fs::file_type type = type_of(path);
    if (type == fs::file_type::directory)
        throw BadConfig("--output " + path.string() + " is a folder",
                        "one file is written",
                        "name a file in it");
    if (may_never_end(type))
        throw BadConfig("--output " + path.string() + " is not a file",
                        std::string(kind_of(type)) + ", and a file is put in its place",
                        "name a file");
    if (type == fs::file_type::regular && !may_replace)
        throw BadConfig(path.string() + " exists already",
                        "it is replaced with --overwrite alone",
                        "name another file");
}

}  // namespace hetseq
