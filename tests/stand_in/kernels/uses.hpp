// What a kernel reads and writes, for the order of streams.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../cuda/stand_in_cuda.hpp"

namespace hetseq::detail {

template <class T>
stand_in::Use reads(const T* begin, std::int64_t count) {
    return stand_in::reads(begin, static_cast<std::size_t>(count));
}
template <class T>
stand_in::Use writes(const T* begin, std::int64_t count) {
    return stand_in::writes(begin, static_cast<std::size_t>(count));
}

}  // namespace hetseq::detail
