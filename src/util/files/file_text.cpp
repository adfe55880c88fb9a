#include "hetseq/util/files/file_text.hpp"

#include <fstream>
#include <iterator>

#include "hetseq/util/files/regular_file.hpp"

namespace hetseq {

namespace {

std::optional<std::string> read_all(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file)
        return std::nullopt;
    return std::string{std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

std::optional<std::string> read_file_text(const std::filesystem::path& path) {
    check_regular_file(path);
    return read_all(path);
}

std::optional<std::string> read_text_once(const std::filesystem::path& path) {
    check_text_file(path);
    return read_all(path);
}

}  // namespace hetseq
