#include "hetseq/train/out_of_memory.hpp"

#include <new>
#include <string>

#include <c10/util/Exception.h>

namespace hetseq {

bool is_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
        dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return true;
    // The CPU allocator throws a plain c10::Error.
    return std::string(error.what()).find("DefaultCPUAllocator: can't allocate memory") !=
           std::string::npos;
}

}  // namespace hetseq
