#pragma once

#include <string>

namespace hetseq {

/// This host's own name.
std::string host_name();

/// One name for all containers of a machine, whatever their hosts are called: its kernel's boot_id.
/// It is `host_name()` where that cannot be read.
std::string machine_id();

}  // namespace hetseq
