#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetseq/util/precision.hpp"

namespace hetseq {

/// What a GPU can do at most, from its maker's data sheet.
struct GpuPeaks {
    std::string name;   // as options say it: "v100"
    std::string title;  // "NVIDIA V100 SXM2 32 GB"
    double fp32_tflops = 0;
    double fp64_tflops = 0;
    double tf32_tflops = 0;  // 0: it has no such arithmetic, nor those below
    double bf16_tflops = 0;
    double fp16_tflops = 0;
    double memory_gb_s = 0;  // 10^9 bytes a second
    double cache_mb = 0;     // of the last level, 10^6 bytes
};

/// [10^12 operations a second]; 0: the GPU does not compute products in `precision`. tf32 is fp32
/// where there is none.
double peak_tflops(const GpuPeaks& gpu, Precision precision);

/// The GPUs that are known, fastest first.
std::span<const GpuPeaks> gpu_peaks();

/// What one operator does, counted.
struct OperatorWork {
    std::string name;  // "aten::addmm"
    double flops = 0;  // multiplications and additions of matrix products and convolutions
    Precision precision = Precision::fp32;  // of the factors
    /// The bytes of each tensor that it reads or writes.
    std::vector<std::int64_t> tensor_bytes = {};
};

/// The least time that operators can take on a GPU, one after the other. [ms]
struct RooflineBound {
    double compute_ms = 0;  // all arithmetic at the peak
    double memory_ms = 0;   // all tensors that no cache holds, once through the memory
    double device_ms = 0;   // each operator takes the longer of the two
    double launch_ms = 0;   // the host launches each operator as one kernel

    /// The device works while the host launches.
    double ms() const noexcept { return device_ms > launch_ms ? device_ms : launch_ms; }
};

/// The time that the host takes to launch a kernel. It is assumed: a data sheet has no such figure.
constexpr double launch_us = 2;

/// Williams, Waterman and Patterson 2009, "Roofline: an insightful visual performance model for
/// multicore architectures": an operator takes at least flops / peak and bytes / bandwidth. A
/// tensor that the last level's cache could hold counts no bytes, since an operator before may have
/// left it there. The GPU must compute in the operators' precisions.
RooflineBound roofline(std::span<const OperatorWork> operators, const GpuPeaks& gpu);

}  // namespace hetseq
