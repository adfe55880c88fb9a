#include "hetseq/comm/host/host_name.hpp"

#include <array>

#include <unistd.h>

namespace hetseq {

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace hetseq
