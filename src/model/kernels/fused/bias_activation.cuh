// The bias and the activation behind a product, on a GPU.
#pragma once

#include "column_block.cuh"
#include "row_team.cuh"

namespace hetseq::detail {

template <class Value>
__device__ __forceinline__ Value normal_distribution(Value x) {
    return Value(0.5) * (1 + std::erf(x * Value(0.70710678118654752440)));  // sqrt(1/2)
}

/// The argument of the hyperbolic tangent in Hendrycks and Gimpel 2016, equation 2.
template <class Value>
__device__ __forceinline__ Value gelu_argument(Value x) {
    constexpr auto factor = Value(0.79788456080286535588);  // sqrt(2/pi)
    return factor * (x + Value(0.044715) * x * x * x);
}

template <class Value>
__device__ __forceinline__ Value activated(Activation activation, Value x) {
    switch (activation) {
        case Activation::gelu:
            return x * normal_distribution(x);
        case Activation::gelu_tanh:
            return Value(0.5) * x * (1 + std::tanh(gelu_argument(x)));
        case Activation::relu:
            return x < 0 ? Value(0) : x;  // NaN stays
        case Activation::silu:
            return x / (1 + std::exp(-x));
        case Activation::tanh:
            return std::tanh(x);
    }
    return x;
}

/// The derivative at x. Where `is_kept_output`, x is the output.
template <class Value>
__device__ __forceinline__ Value slope(Activation activation, Value x) {
    switch (activation) {
        case Activation::gelu: {
            constexpr auto density = Value(0.39894228040143267794);  // 1 / sqrt(2 pi)
            return normal_distribution(x) + x * density * std::exp(Value(-0.5) * x * x);
        }
        case Activation::gelu_tanh: {
            constexpr auto factor = Value(0.79788456080286535588);
            const Value t = std::tanh(gelu_argument(x));
            const Value inner = factor * (1 + Value(3 * 0.044715) * x * x);
            return Value(0.5) * (1 + t + x * (1 - t * t) * inner);
        }
        case Activation::relu:
            return Value(x > 0);
        case Activation::silu: {
            const Value share = 1 / (1 + std::exp(-x));
            return share * (1 + x * (1 - share));
        }
        case Activation::tanh:
            return 1 - x * x;
    }
    return 1;
}

/// activation(product + bias). `out` may be `product`. Blocks (x, y): rows and parts of them.
template <class T, class Team>
__global__ void bias_activation(const T* product,
                                const ComputedType<T>* bias,
                                T* out,
                                std::uint32_t rows,
                                std::uint32_t columns,
                                Activation activation) {
    using Value = ComputedType<T>;
    const std::uint32_t row = row_of_team<Team>();
    if (row >= rows)
        return;
    const std::int64_t begin = static_cast<std::int64_t>(row) * columns;
    const std::uint32_t first = blockIdx.y * activation_columns;
    const std::uint32_t end =
        first + activation_columns < columns ? first + activation_columns : columns;
#pragma unroll 4
    for (std::uint32_t column = first + Team::lane(); column < end; column += Team::lanes)
        out[begin + column] = static_cast<T>(
            activated(activation, static_cast<Value>(product[begin + column]) + bias[column]));
}

/// The gradients of the product and, summed over the rows, of the bias. `kept`: the output where
/// `is_kept_output`, else the product.
template <class T, class Team>
__global__ __launch_bounds__(Team::threads) void bias_activation_backward(
    const T* kept,
    const ComputedType<T>* bias,
    const T* gradients,
    T* of_product,
    ComputedType<T>* of_bias,
    std::uint32_t rows,
    std::uint32_t columns,
    Activation activation) {
    using Value = ComputedType<T>;
    const std::uint32_t column = Team::column();
    const bool is_there = column < columns;
    const Value added = is_kept_output(activation) || !is_there ? Value(0) : bias[column];
    Value sum = 0;
    for (std::uint32_t row = Team::lane(); is_there && row < rows; row += Team::lanes) {
        const std::int64_t i = static_cast<std::int64_t>(row) * columns + column;
        const Value gradient = static_cast<Value>(gradients[i]) *
                               slope(activation, static_cast<Value>(kept[i]) + added);
        of_product[i] = static_cast<T>(gradient);
        sum += gradient;
    }
    sum = Team::sum(sum);
    if (is_there && Team::lane() == 0)
        of_bias[column] = sum;
}

}  // namespace hetseq::detail
