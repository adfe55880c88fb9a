#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// What a rank computes in. Parameters, gradients and the optimizer are fp32 in all of them but
/// fp64. bf16 and fp16: forward runs under LibTorch's autocast, which rounds the operands of matrix
/// products and convolutions. tf32: an NVIDIA GPU since Ampere rounds them to 10 bits itself.
enum class Precision { fp32, fp64, tf32, bf16, fp16 };

std::string to_string(Precision precision);
/// ", bf16" behind a device's name; nothing for fp32 and fp64, in which all devices compute.
std::string narrow_words(Precision precision);
/// All of them, in the order of the enumeration.
std::vector<std::string> precision_words();
/// Throws InternalError for another word.
Precision precision_of(const std::string& word);

}  // namespace hetseq
