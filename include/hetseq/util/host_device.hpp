#pragma once

/// Marks a function that kernels call too: nvcc compiles it for the GPU, other compilers for the
/// host.
#if defined(__CUDACC__)
#define HETSEQ_HOST_DEVICE __host__ __device__
#else
#define HETSEQ_HOST_DEVICE
#endif
