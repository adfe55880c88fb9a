#include "out_of_memory.hpp"

#include <new>
#include <string>

#include <c10/util/Exception.h>

namespace hetseq {

bool is_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
        dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return true;
    // The CPU's allocator, and CUDA's libraries for their own memory, throw plain errors.
    const std::string text = error.what();
    for (const char* sign : {"DefaultCPUAllocator: can't allocate memory",
                             "CUDA error: out of memory",
                             "CUDA out of memory",  // told by Python within a backward
                             "CUBLAS_STATUS_ALLOC_FAILED",
                             "CUDNN_STATUS_ALLOC_FAILED"})
        if (text.find(sign) != std::string::npos)
            return true;
    return false;
}

}  // namespace hetseq
