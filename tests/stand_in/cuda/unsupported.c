/* Calls that libc10_cuda needs to load, and that hetseq does not make it use. Their types do not matter, so
   cuda_runtime_api.h, which declares them, is not included. */
#include <stdio.h>
#include <stdlib.h>

#define UNSUPPORTED(call)                                                                \
    int call(void) {                              \
        fprintf(stderr, "CUDA's stand-in: %s, which it does not imitate\n", #call);      \
        abort();                                                                         \
    }

UNSUPPORTED(cudaDeviceEnablePeerAccess)
UNSUPPORTED(cudaDeviceGetDefaultMemPool)
UNSUPPORTED(cudaDeviceGetGraphMemAttribute)
UNSUPPORTED(cudaDeviceSetGraphMemAttribute)
UNSUPPORTED(cudaFreeAsync)
UNSUPPORTED(cudaGraphNodeGetDependencies)
UNSUPPORTED(cudaIpcCloseMemHandle)
UNSUPPORTED(cudaIpcGetMemHandle)
UNSUPPORTED(cudaIpcOpenMemHandle)
UNSUPPORTED(cudaMallocAsync)
UNSUPPORTED(cudaMemPoolGetAttribute)
UNSUPPORTED(cudaMemPoolSetAccess)
UNSUPPORTED(cudaMemPoolSetAttribute)
UNSUPPORTED(cudaMemPoolTrimTo)
UNSUPPORTED(cudaStreamGetCaptureInfo)

/* LibTorch asks for functions of the driver with it, and does without those that it does not get. */
int cudaGetDriverEntryPointByVersion(void) {
    return 801; /* cudaErrorNotSupported */
}
