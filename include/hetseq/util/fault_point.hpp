#pragma once

#include <cstdint>

namespace hetseq {

/// A place where tests make a process throw, die or stall. Does nothing in the program: the tests
/// link another definition in its place (tests/faults/fault_points.cpp), so that no option or
/// variable a user sees leads there. `update` is counted from 1; 0: not of an update.
void fault_point(const char* name, std::int64_t update);

}  // namespace hetseq
