#include "cuda_device_name.hpp"

#include <cstdio>

namespace hetseq {

bool is_slice(const std::string& name) {
    return name.find(" MIG ") != std::string::npos;
}

std::string device_uuid(const std::string& name,
                        const DeviceUuid& uuid,
                        const std::string& visible) {
    const std::string slice = "MIG-";
    if (is_slice(name) && visible.starts_with(slice) && visible.find(',') == std::string::npos)
        return visible;
    std::string text = is_slice(name) ? slice : "GPU-";
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        char hex[3];
        std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(uuid[i]));
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text += '-';
        text += hex;
    }
    return text;
}

std::string pci_address(int domain, int bus, int device) {
    char text[32];
    std::snprintf(text,
                  sizeof text,
                  "%04x:%02x:%02x.0",
                  static_cast<unsigned>(domain),
                  static_cast<unsigned>(bus),
                  static_cast<unsigned>(device));
    return text;
}

}  // namespace hetseq
