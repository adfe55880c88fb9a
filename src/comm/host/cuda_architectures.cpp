#include "cuda_architectures.hpp"

#include <cctype>
#include <sstream>

namespace hetseq {

namespace {

struct Architecture {
    int major = 0;
    int minor = 0;
    bool has_ptx = true;
    bool only_itself = false;  // "90a"
};

// "90", "90a", "90-real" or "90-virtual".
Architecture parse_architecture(const std::string& text) {
    const int number = std::stoi(text);
    Architecture architecture{number / 10, number % 10};
    architecture.has_ptx = text.find("-real") == std::string::npos;
    architecture.only_itself = text.substr(0, text.find('-')).find('a') != std::string::npos;
    return architecture;
}

}  // namespace

std::string to_string(const ComputeCapability& capability) {
    return std::to_string(capability.major) + "." + std::to_string(capability.minor);
}

bool runs_on(const std::string& architectures, const ComputeCapability& capability) {
    const int own = 10 * capability.major + capability.minor;
    std::istringstream list{architectures};
    for (std::string entry; list >> entry;) {
        if (std::isdigit(static_cast<unsigned char>(entry.front())) == 0)
            return true;  // "native" or "all": it is not known here which they are
        const Architecture one = parse_architecture(entry);
        const int number = 10 * one.major + one.minor;
        if (one.only_itself ? own == number
                            : own >= number && (one.has_ptx || one.major == capability.major))
            return true;
    }
    return false;
}

}  // namespace hetseq
