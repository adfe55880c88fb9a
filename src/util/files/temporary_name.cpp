#include "hetseq/util/files/temporary_name.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <random>

#include <unistd.h>

namespace hetseq {

namespace {
const std::string mark = ".tmp-";
}

std::string random_digits() {
    std::random_device device;
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%08x%08x", device(), device());
    return text.data();
}

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
    return path.string() + mark + std::to_string(::getpid()) + "-" + random_digits();
}

bool is_temporary_name(const std::string& name, const std::string& of) {
    return name.rfind(of + mark, 0) == 0;
}

}  // namespace hetseq
