#include "hetseq/util/precision.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::array<std::pair<Precision, const char*>, 5> precisions{{
    {Precision::fp32, "fp32"},
    {Precision::fp64, "fp64"},
    {Precision::tf32, "tf32"},
    {Precision::bf16, "bf16"},
    {Precision::fp16, "fp16"},
}};

}  // namespace

std::string to_string(Precision precision) {
    return precisions[static_cast<std::size_t>(precision)].second;
}

std::string narrow_words(Precision precision) {
    const bool is_wide = precision == Precision::fp32 || precision == Precision::fp64;
    return is_wide ? "" : ", " + to_string(precision);
}

std::vector<std::string> precision_words() {
    std::vector<std::string> words;
    for (const auto& [precision, word] : precisions)
        words.emplace_back(word);
    return words;
}

Precision precision_of(const std::string& word) {
    const auto found = std::find_if(
        precisions.begin(), precisions.end(), [&](const auto& one) { return word == one.second; });
    if (found == precisions.end())
        throw InternalError("there is no precision '" + word + "'");
    return found->first;
}

}  // namespace hetseq
