#include "hetseq/comm/host/host_name.hpp"

#include <array>
#include <fstream>

#include <unistd.h>

namespace hetseq {

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string machine_id() {
    std::ifstream file{"/proc/sys/kernel/random/boot_id"};
    std::string id;
    return file >> id ? id : host_name();
}

}  // namespace hetseq
