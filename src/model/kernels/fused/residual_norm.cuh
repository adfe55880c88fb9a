// Dropout, residual and layer normalisation on a GPU in one pass over the rows.
#pragma once

#include "column_block.cuh"
#include "row_team.cuh"

namespace hetseq::detail {

/// `mask`, or one that keeps all.
__device__ __forceinline__ DropoutMask mask_if(bool applies, DropoutMask mask) {
    if (!applies)
        mask.threshold = DropoutMask{}.threshold;
    return mask;
}

/// Writes the sums of a row, and returns the sum of those that are this lane's.
template <class T, class Team>
__device__ __forceinline__ ComputedType<T> add_residual(const T* x,
                                                        const ComputedType<T>* residual,
                                                        const ComputedType<T>* x_bias,
                                                        ComputedType<T>* sums,
                                                        std::int64_t begin,
                                                        const DropoutRow& dropout,
                                                        const TokenPlaces& places) {
    using Value = ComputedType<T>;
    const auto keep_scale = static_cast<Value>(places.keep_scale);
    Value total = 0;
    for_each_element<Team>(mask_if(!places.drops_output, places.mask),
                           dropout,
                           places.columns,
                           [&](std::uint32_t column, bool kept) {
                               const std::int64_t i = begin + column;
                               const Value shift = x_bias == nullptr ? Value(0) : x_bias[column];
                               Value sum = residual == nullptr ? Value(0) : residual[i];
                               if (x != nullptr && kept)
                                   sum += (static_cast<Value>(x[i]) + shift) * keep_scale;
                               sums[i] = sum;
                               total += sum;
                           });
    return total;
}

/// norm(residual + dropout(x + x_bias)) * weight + bias. One of x and the residual may be null.
/// Where `drops_output`, x is null and dropout follows.
template <class T, class Team>
__global__ void residual_norm(const T* x,
                              const ComputedType<T>* residual,
                              NormParameters<const ComputedType<T>> parameters,
                              NormOutputs<T> out,
                              TokenPlaces places) {
    using Value = ComputedType<T>;
    const std::uint32_t row = row_of_team<Team>();
    if (row >= places.rows)
        return;
    const std::int64_t begin = static_cast<std::int64_t>(row) * places.columns;
    const DropoutRow dropout = places.dropout_of(row);
    const Value total =
        add_residual<T, Team>(x, residual, parameters.x_bias, out.sums, begin, dropout, places);
    const Value mean = Team::sum(total) / static_cast<Value>(places.columns);
    // Each lane reads what it wrote.
    Value squares = 0;
    for_each_element<Team>(DropoutMask{}, dropout, places.columns, [&](std::uint32_t column, bool) {
        const Value difference = out.sums[begin + column] - mean;
        squares += difference * difference;
    });
    const Value variance = Team::sum(squares) / static_cast<Value>(places.columns);
    const Value inverse = 1 / std::sqrt(variance + static_cast<Value>(places.eps));
    const Value scale = places.drops_output ? static_cast<Value>(places.keep_scale) : Value(1);
    const DropoutMask mask = mask_if(places.drops_output, places.mask);
    for_each_element<Team>(mask, dropout, places.columns, [&](std::uint32_t column, bool kept) {
        const std::int64_t i = begin + column;
        const Value normal = (out.sums[i] - mean) * inverse;
        const Value shifted = normal * parameters.weight[column] + parameters.bias[column];
        const Value value = kept ? shifted * scale : Value(0);
        out.wide[i] = value;
        if (out.narrow != nullptr)
            out.narrow[i] = static_cast<T>(value);
    });
    if (Team::lane() == 0) {
        out.means[row] = mean;
        out.inverse_deviations[row] = inverse;
    }
}

/// Gradients of the residual and of x, of which one may be null. Dropout is that of x.
template <class T, class Team>
__global__ void residual_norm_backward(NormGradients<T> given,
                                       const ComputedType<T>* weight,
                                       ComputedType<T>* residual,
                                       T* x,
                                       TokenPlaces places) {
    using Value = ComputedType<T>;
    const std::uint32_t row = row_of_team<Team>();
    if (row >= places.rows)
        return;
    const std::int64_t begin = static_cast<std::int64_t>(row) * places.columns;
    const DropoutRow dropout = places.dropout_of(row);
    const Value mean = given.means[row], inverse = given.inverse_deviations[row];
    Value sum = 0, product = 0;
    for (std::uint32_t column = Team::lane(); column < places.columns; column += Team::lanes) {
        const std::int64_t i = begin + column;
        const Value gradient = given.of_output(i) * weight[column];
        sum += gradient;
        product += gradient * (given.sums[i] - mean) * inverse;
    }
    sum = Team::sum(sum) / static_cast<Value>(places.columns);
    product = Team::sum(product) / static_cast<Value>(places.columns);
    const auto keep_scale = static_cast<Value>(places.keep_scale);
    for_each_element<Team>(
        places.mask, dropout, places.columns, [&](std::uint32_t column, bool kept) {
            const std::int64_t i = begin + column;
            const Value normal = (given.sums[i] - mean) * inverse;
            const Value gradient =
                inverse * (given.of_output(i) * weight[column] - sum - normal * product);
            if (residual != nullptr)
                residual[i] = gradient;
            if (x != nullptr)
                x[i] = kept ? static_cast<T>(gradient * keep_scale) : T(0);
        });
}

/// The gradients of weight and bias, and of x's bias, the sum of `of_x`.
template <class T, class Team>
__global__ __launch_bounds__(Team::threads) void norm_parameters_backward(
    NormGradients<T> given,
    const T* of_x,
    NormParameters<ComputedType<T>> out,
    std::uint32_t rows,
    std::uint32_t columns) {
    using Value = ComputedType<T>;
    const std::uint32_t column = Team::column();
    const bool is_there = column < columns;
    Value weight = 0, bias = 0, x_bias = 0;
    for (std::uint32_t row = Team::lane(); is_there && row < rows; row += Team::lanes) {
        const std::int64_t i = static_cast<std::int64_t>(row) * columns + column;
        const Value gradient = given.of_output(i);
        weight += gradient * (given.sums[i] - given.means[row]) * given.inverse_deviations[row];
        bias += gradient;
        if (out.x_bias != nullptr)
            x_bias += static_cast<Value>(of_x[i]);
    }
    weight = Team::sum(weight);
    bias = Team::sum(bias);
    x_bias = Team::sum(x_bias);
    if (!is_there || Team::lane() != 0)
        return;
    out.weight[column] = weight;
    out.bias[column] = bias;
    if (out.x_bias != nullptr)
        out.x_bias[column] = x_bias;
}

}  // namespace hetseq::detail
