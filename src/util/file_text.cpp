#include "hetseq/util/file_text.hpp"

#include <fstream>
#include <iterator>

namespace hetseq {

std::optional<std::string> read_file_text(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file)
        return std::nullopt;
    return std::string{std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace hetseq
