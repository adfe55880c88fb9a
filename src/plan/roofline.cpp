#include "hetseq/plan/roofline.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// fp32 without tensor cores, since hetseq computes fp32 as fp32; tf32, bf16 and fp16 on tensor
// cores, without sparsity. Sources: NVIDIA's data sheets and white papers "H100 Tensor Core GPU
// Architecture" (2022), "A100 Tensor Core GPU Architecture" (2020), "Tesla V100 GPU Architecture"
// (2017) and "Tesla P100" (2016). fp64 of H100 and A100 is that of their tensor cores, which matrix
// products in fp64 use. The P100 computes fp16 without tensor cores.
const GpuPeaks known[] = {
    {.name = "h100",
     .title = "NVIDIA H100 SXM5 80 GB",
     .fp32_tflops = 66.9,
     .fp64_tflops = 66.9,
     .tf32_tflops = 494.7,
     .bf16_tflops = 989.4,
     .fp16_tflops = 989.4,
     .memory_gb_s = 3352,
     .cache_mb = 50},
    {.name = "a100",
     .title = "NVIDIA A100 SXM4 80 GB",
     .fp32_tflops = 19.5,
     .fp64_tflops = 19.5,
     .tf32_tflops = 156,
     .bf16_tflops = 312,
     .fp16_tflops = 312,
     .memory_gb_s = 2039,
     .cache_mb = 40},
    {.name = "v100",
     .title = "NVIDIA V100 SXM2",
     .fp32_tflops = 15.7,
     .fp64_tflops = 7.8,
     .fp16_tflops = 125,
     .memory_gb_s = 900,
     .cache_mb = 6.3},
    {.name = "p100",
     .title = "NVIDIA P100 SXM2 16 GB",
     .fp32_tflops = 10.6,
     .fp64_tflops = 5.3,
     .fp16_tflops = 21.2,
     .memory_gb_s = 732,
     .cache_mb = 4.2},
};

}  // namespace

std::span<const GpuPeaks> gpu_peaks() {
    return known;
}

double peak_tflops(const GpuPeaks& gpu, Precision precision) {
    switch (precision) {
        case Precision::fp32:
            return gpu.fp32_tflops;
        case Precision::fp64:
            return gpu.fp64_tflops;
        case Precision::tf32:
            return gpu.tf32_tflops > 0 ? gpu.tf32_tflops : gpu.fp32_tflops;  // as it computes then
        case Precision::bf16:
            return gpu.bf16_tflops;
        case Precision::fp16:
            return gpu.fp16_tflops;
    }
    HETSEQ_ASSERT(false);
}

RooflineBound roofline(std::span<const OperatorWork> operators, const GpuPeaks& gpu) {
    constexpr double per_tflops_ms = 1e-9;  // 10^12 a second are 10^9 a millisecond
    constexpr double per_gb_s_ms = 1e-6;
    RooflineBound bound;
    for (const OperatorWork& work : operators) {
        const double compute_ms =
            work.flops == 0 ? 0 : work.flops / peak_tflops(gpu, work.precision) * per_tflops_ms;
        double bytes = 0;
        for (const std::int64_t tensor : work.tensor_bytes)
            if (static_cast<double>(tensor) > 1e6 * gpu.cache_mb)
                bytes += static_cast<double>(tensor);
        const double memory_ms = bytes / gpu.memory_gb_s * per_gb_s_ms;
        bound.compute_ms += compute_ms;
        bound.memory_ms += memory_ms;
        bound.device_ms += std::max(compute_ms, memory_ms);
    }
    bound.launch_ms = static_cast<double>(operators.size()) * launch_us / 1000;
    return bound;
}

}  // namespace hetseq
