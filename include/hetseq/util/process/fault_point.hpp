#pragma once

#include <cstdint>

namespace hetseq {

/// A place where tests make a process throw, die or stall. It does nothing in the program. The
/// tests link another definition in its place (tests/faults/fault_points.cpp), so no option or
/// variable of the program can reach it. `update` is counted from 1; 0 means that it belongs to no
/// update.
void fault_point(const char* name, std::int64_t update);

}  // namespace hetseq
