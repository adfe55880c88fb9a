#include "hetseq/util/error.hpp"

#include "cuda_devices.hpp"

namespace hetseq {

VisibleCudaDevices visible_cuda_devices() {
    return {{}, "this hetseq was built without CUDA"};
}

void make_cuda_device_current(int) {
    throw InternalError("this hetseq was built without CUDA");
}

}  // namespace hetseq
