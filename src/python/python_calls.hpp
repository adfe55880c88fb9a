#pragma once

#include <vector>

#include <ATen/core/ivalue.h>

namespace hetseq {

/// Calls the operator `name` ("hetseq::task_forward"), which the Python package implements, and
/// returns what it gives. An exception of the user's Python becomes BadConfig with its traceback;
/// one that says that memory ran out becomes c10::OutOfMemoryError, as LibTorch itself throws it.
std::vector<c10::IValue> call_python(const char* name, std::vector<c10::IValue> arguments);

}  // namespace hetseq
