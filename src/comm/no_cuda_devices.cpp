#include "cuda_devices.hpp"

namespace hetseq {

VisibleCudaDevices visible_cuda_devices() {
    return {{}, "this hetseq was built without CUDA"};
}

}  // namespace hetseq
