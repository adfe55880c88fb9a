#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <c10/core/ScalarType.h>

namespace hetseq {

/// What a message says of one tensor before its values come.
struct TensorDescription {
    std::optional<c10::ScalarType> type;  // none: the tensor is undefined
    bool requires_grad = false;
    std::vector<std::int64_t> sizes;

    bool operator==(const TensorDescription&) const = default;
};

/// The words of a message's first part, whatever it holds: some ten tensors of three dimensions.
inline constexpr std::size_t header_words = 64;

/// At least `header_words`; the first tells how many there are.
std::vector<std::int64_t> to_words(const std::vector<TensorDescription>& tensors);

/// How many words there are of which `header` is the beginning.
std::size_t word_count(std::span<const std::int64_t> header);

/// Throws InternalError where `words` are not those of `to_words`.
std::vector<TensorDescription> from_words(std::span<const std::int64_t> words);

}  // namespace hetseq
