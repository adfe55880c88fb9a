// Attention's probabilities on a GPU: scale, mask, softmax and dropout in one pass over the scores.
#pragma once

#include "row_team.cuh"

namespace hetseq::detail {

/// One row of scores.
template <class T>
struct ScoreRow {
    using Value = ComputedType<T>;

    __device__ ScoreRow(const T* scores, const ScorePlaces& places, std::uint32_t row)
        : places{places}, begin{static_cast<std::int64_t>(row) * places.columns} {
        const std::uint32_t of_sample = places.heads * places.queries;
        const std::uint32_t sample = row / of_sample, inner = row % of_sample;
        values = scores + begin;
        keys = places.keys == nullptr
                   ? nullptr
                   : places.keys + static_cast<std::int64_t>(sample) * places.columns;
        seen = places.is_causal ? inner % places.queries + 1 : places.columns;
        if (places.sample_ids != nullptr)
            dropout = {static_cast<std::uint64_t>(places.sample_ids[sample]),
                       places.grid.first_chunk(inner) * DropoutMask::lanes};
    }
    __device__ bool sees(std::uint32_t column) const {
        return column < seen && (keys == nullptr || keys[column]);
    }
    // Finite where a key is hidden, so that a row of nothing but padding gives no NaN.
    __device__ Value score(std::uint32_t column) const {
        return sees(column) ? static_cast<Value>(values[column]) * static_cast<Value>(places.scale)
                            : -std::numeric_limits<Value>::max();
    }

    const ScorePlaces& places;
    std::int64_t begin;
    const T* values = nullptr;
    const bool* keys = nullptr;
    std::uint32_t seen = 0;
    DropoutRow dropout;
};

/// `dropped`: the probabilities after dropout. `log_sums` (rows): of exp(score), for backward.
template <class T, class Team>
__global__ void attention_probabilities(const T* scores,
                                        T* dropped,
                                        ComputedType<T>* log_sums,
                                        ScorePlaces places) {
    using Value = ComputedType<T>;
    const std::uint32_t number = row_of_team<Team>();
    if (number >= places.rows)
        return;
    const ScoreRow<T> row{scores, places, number};
    Value largest = -std::numeric_limits<Value>::max();
    for (std::uint32_t column = Team::lane(); column < places.columns; column += Team::lanes) {
        const Value score = row.score(column);
        largest = score > largest ? score : largest;
    }
    largest = Team::max(largest);
    Value sum = 0;
    for (std::uint32_t column = Team::lane(); column < places.columns; column += Team::lanes)
        sum += std::exp(row.score(column) - largest);
    sum = Team::sum(sum);
    const Value factor = static_cast<Value>(places.keep_scale) / sum;
    for_each_element<Team>(
        places.mask, row.dropout, places.columns, [&](std::uint32_t column, bool kept) {
            const Value value = std::exp(row.score(column) - largest) * factor;
            dropped[row.begin + column] = kept ? static_cast<T>(value) : T(0);
        });
    if (Team::lane() == 0)
        log_sums[number] = largest + std::log(sum);
}

/// `gradients`: of the probabilities after dropout. `out`: those of the scores.
template <class T, class Team>
__global__ void attention_probabilities_backward(const T* scores,
                                                 const ComputedType<T>* log_sums,
                                                 const T* gradients,
                                                 T* out,
                                                 ScorePlaces places) {
    using Value = ComputedType<T>;
    const std::uint32_t number = row_of_team<Team>();
    if (number >= places.rows)
        return;
    const ScoreRow<T> row{scores, places, number};
    const Value log_sum = log_sums[number];
    const auto keep_scale = static_cast<Value>(places.keep_scale);
    const T* own = gradients + row.begin;
    Value sum = 0;
    for_each_element<Team>(
        places.mask, row.dropout, places.columns, [&](std::uint32_t column, bool kept) {
            if (kept)
                sum += std::exp(row.score(column) - log_sum) * static_cast<Value>(own[column]);
        });
    sum = Team::sum(sum) * keep_scale;
    for_each_element<Team>(
        places.mask, row.dropout, places.columns, [&](std::uint32_t column, bool kept) {
            const Value gradient = kept ? static_cast<Value>(own[column]) * keep_scale : Value(0);
            const Value value = std::exp(row.score(column) - log_sum) * (gradient - sum) *
                                static_cast<Value>(places.scale);
            out[row.begin + column] = row.sees(column) ? static_cast<T>(value) : T(0);
        });
}

}  // namespace hetseq::detail
