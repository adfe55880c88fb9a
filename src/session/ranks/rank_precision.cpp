#include "hetseq/session/ranks/rank_precision.hpp"

#include <algorithm>

#include <ATen/Context.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/comm/host/compute_capability.hpp"

namespace hetseq {

namespace {

constexpr int volta = 70;
constexpr int ampere = 80;

#ifdef __x86_64__
bool has_bf16_on_cpu() {
    return __builtin_cpu_supports("avx512bf16") != 0;
}
// Tiles; vectors alone gain a tenth at best, and a small Transformer took twice as long.
bool has_fast_bf16_on_cpu() {
    return __builtin_cpu_supports("amx-bf16") != 0;
}
#else
bool has_bf16_on_cpu() {
    return false;
}
bool has_fast_bf16_on_cpu() {
    return false;
}
#endif

Precision best_of_gpu(int capability) {
    return capability >= ampere  ? Precision::bf16
           : capability >= volta ? Precision::fp16
                                 : Precision::fp32;
}

[[noreturn]] void reject(Precision precision, const std::string& device, const std::string& other) {
    throw BadConfig("--precision " + to_string(precision) + " on " + device,
                    "the device does not compute in it",
                    "give this rank " + other);
}

Precision on_cpu(Precision precision, const RankInfo& info) {
    if (precision == Precision::fp16)
        reject(precision, info.device_name, "bf16 or fp32");
    if (precision == Precision::bf16 && !has_bf16_on_cpu())
        log::warn_here("--precision bf16 on " + info.device_name +
                       ", which has no instructions for it: fp32 is many times faster there");
    return precision == Precision::tf32 ? Precision::fp32 : precision;
}

Precision on_gpu(Precision precision, const RankInfo& info, int capability) {
    if (capability >= ampere)
        return precision;
    if (precision == Precision::bf16)
        reject(precision, info.device_name, capability >= volta ? "fp16 or fp32" : "fp32");
    return precision == Precision::tf32 ? Precision::fp32 : precision;
}

}  // namespace

Precision rank_precision(PrecisionChoice choice, const RankInfo& info, at::Device device) {
    if (device.is_cpu())
        return choice                   ? on_cpu(*choice, info)
               : has_fast_bf16_on_cpu() ? Precision::bf16
                                        : Precision::fp32;
    const int capability = compute_capability(device);
    return choice ? on_gpu(*choice, info, capability) : best_of_gpu(capability);
}

void compute_in(Precision precision) {
    at::Context& context = at::globalContext();
    context.setAllowTF32CuDNN(precision == Precision::tf32);
    context.setAllowTF32CuBLAS(precision == Precision::tf32);
    context.setAllowFP16ReductionCuBLAS(false);
    context.setAllowBF16ReductionCuBLAS(false);
    context.setDeterministicCuDNN(true);  // a continued run has the bits of a whole one
}

void check_precisions(const std::vector<Precision>& by_rank) {
    const auto doubles = std::count(by_rank.begin(), by_rank.end(), Precision::fp64);
    if (doubles == 0 || doubles == std::ssize(by_rank))
        return;
    const auto other = std::find_if(by_rank.begin(), by_rank.end(), [](Precision precision) {
        return precision != Precision::fp64;
    });
    throw BadConfig("--precision gives fp64 to some ranks, and " + to_string(*other) + " to rank " +
                        std::to_string(other - by_rank.begin()),
                    "parameters are fp64 on all ranks or on none",
                    "give fp64 to all of them");
}

}  // namespace hetseq
