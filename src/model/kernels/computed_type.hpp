#pragma once

namespace hetseq::detail {

/// What is computed with values of type T: fp32 at least.
template <class T>
struct Computed {
    using Type = float;
};
template <>
struct Computed<double> {
    using Type = double;
};
template <class T>
using ComputedType = typename Computed<T>::Type;

}  // namespace hetseq::detail
