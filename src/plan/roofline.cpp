#include "hetseq/plan/roofline.hpp"

#include <algorithm>

namespace hetseq {

namespace {

// Without tensor cores: hetseq computes fp32 as fp32. Sources: NVIDIA's data sheets and white
// papers "H100 Tensor Core GPU Architecture" (2022), "A100 Tensor Core GPU Architecture" (2020),
// "Tesla V100 GPU Architecture" (2017) and "Tesla P100" (2016). fp64 of H100 and A100 is that of
// their tensor cores, which matrix products in fp64 use.
const GpuPeaks known[] = {
    {"h100", "NVIDIA H100 SXM5 80 GB", 66.9, 66.9, 3352, 50},
    {"a100", "NVIDIA A100 SXM4 80 GB", 19.5, 19.5, 2039, 40},
    {"v100", "NVIDIA V100 SXM2", 15.7, 7.8, 900, 6.3},
    {"p100", "NVIDIA P100 SXM2 16 GB", 10.6, 5.3, 732, 4.2},
};

}  // namespace

std::span<const GpuPeaks> gpu_peaks() {
    return known;
}

RooflineBound roofline(std::span<const OperatorWork> operators, const GpuPeaks& gpu) {
    constexpr double per_tflops_ms = 1e-9;  // 10^12 a second are 10^9 a millisecond
    constexpr double per_gb_s_ms = 1e-6;
    RooflineBound bound;
    for (const OperatorWork& work : operators) {
        const double peak = work.is_fp64 ? gpu.fp64_tflops : gpu.fp32_tflops;
        const double compute_ms = work.flops / peak * per_tflops_ms;
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
