#pragma once

#include <string>

namespace hetseq {

/// This host's own name.
std::string host_name();

}  // namespace hetseq
