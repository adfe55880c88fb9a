#pragma once

#include <string>

namespace hetseq {

/// This host's own name.
std::string host_name();

/// The same in all containers of a machine, whatever they are called, and on no other machine: its
/// kernel's boot_id, or `host_name()` where there is none.
std::string machine_id();

}  // namespace hetseq
