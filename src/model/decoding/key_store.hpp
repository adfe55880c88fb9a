#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned_array.hpp"
#include "model/kernels/cached_attention_loops.hpp"

namespace hetseq::detail {

/// Keys and values of one sentence's positions, for some layers.
template <class T>
class KeyStore {
public:
    KeyStore(const HeadShape& shape, std::int64_t layers, std::int64_t positions);

    /// Makes room for as many positions; what is stored stays.
    void grow(std::int64_t positions);
    std::int64_t capacity() const { return groups_ * group_width<T>; }

    /// `key` and `value` (heads * width).
    void store(std::int64_t layer, std::int64_t position, const T* key, const T* value);
    /// Those of the first `positions`, filled up to whole groups.
    CachedKeys<T> layer(std::int64_t layer, std::int64_t positions) const;

private:
    std::int64_t key_count() const { return groups_ * group_width<T> * shape_.all(); }
    std::int64_t value_count() const {
        return groups_ * group_width<T> * shape_.padded_values<T>();
    }

    HeadShape shape_;
    std::int64_t layers_;
    std::int64_t groups_;
    AlignedArray<T> keys_, values_;  // layer by layer, as `CachedKeys` has them
};

/// The decoder's own keys and values of one sentence's hypotheses. Hypotheses share what they have
/// in common: each holds a set of positions, and reordering them moves no keys.
template <class T>
class HypothesisKeys {
public:
    HypothesisKeys(const HeadShape& shape, std::int64_t layers);

    /// The next step's rows come from these rows of the step before (any in the first step). Each
    /// gets a new position; those that no row holds any more are free for it.
    void advance(std::span<const std::int32_t> parents);

    std::int64_t rows() const { return static_cast<std::int64_t>(newest_.size()); }
    /// The new position of a row.
    std::int64_t newest(std::int64_t row) const { return newest_[static_cast<std::size_t>(row)]; }
    void store(std::int64_t layer, std::int64_t row, const T* key, const T* value) {
        store_.store(layer, newest(row), key, value);
    }
    CachedKeys<T> layer(std::int64_t layer) const { return store_.layer(layer, positions_); }
    /// (rows, kept_stride): 1 where a row holds a position, else 0.
    const T* kept() const { return kept_.data(); }
    std::int64_t kept_stride() const { return store_.capacity(); }

private:
    void inherit(std::span<const std::int32_t> parents, std::int64_t capacity);

    KeyStore<T> store_;
    std::vector<T> kept_, next_;
    std::vector<std::int64_t> newest_;
    std::int64_t positions_ = 0;  // behind the last that is held
};

}  // namespace hetseq::detail
