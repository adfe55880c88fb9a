#pragma once

#include <string>
#include <vector>

#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

/// The words of --device.
std::vector<std::string> device_words();

/// The choice for a rank on `host` by --device, a word or a list by rank or host. Throws BadConfig.
DeviceChoice rank_device(const std::string& list, int rank, const std::string& host);

}  // namespace hetseq
