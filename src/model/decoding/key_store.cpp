#include "key_store.hpp"

#include <algorithm>

namespace hetseq::detail {

template <class T>
KeyStore<T>::KeyStore(const HeadShape& shape, std::int64_t layers, std::int64_t positions)
    : shape_{shape},
      layers_{layers},
      groups_{whole_groups<T>(positions) / group_width<T>},
      keys_(layers * key_count()),
      values_(layers * value_count()) {}

template <class T>
void KeyStore<T>::grow(std::int64_t positions) {
    KeyStore larger(shape_, layers_, positions);
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
        std::copy_n(keys_.data() + layer * key_count(),
                    key_count(),
                    larger.keys_.data() + layer * larger.key_count());
        std::copy_n(values_.data() + layer * value_count(),
                    value_count(),
                    larger.values_.data() + layer * larger.value_count());
    }
    *this = std::move(larger);
}

template <class T>
void KeyStore<T>::store(std::int64_t layer, std::int64_t position, const T* key, const T* value) {
    store_key(key, shape_, position, keys_.data() + layer * key_count());
    store_value(value, shape_, position, values_.data() + layer * value_count());
}

template <class T>
CachedKeys<T> KeyStore<T>::layer(std::int64_t layer, std::int64_t positions) const {
    return {keys_.data() + layer * key_count(),
            values_.data() + layer * value_count(),
            whole_groups<T>(positions) / group_width<T>};
}

template <class T>
HypothesisKeys<T>::HypothesisKeys(const HeadShape& shape, std::int64_t layers)
    : store_(shape, layers, 2 * group_width<T>) {}

// Rows of `capacity` positions, as their parents hold them.
template <class T>
void HypothesisKeys<T>::inherit(std::span<const std::int32_t> parents, std::int64_t capacity) {
    next_.assign(parents.size() * static_cast<std::size_t>(capacity), T(0));
    if (positions_ == 0)
        return;
    for (std::size_t row = 0; row < parents.size(); ++row)
        std::copy_n(kept_.begin() + parents[row] * kept_stride(),
                    positions_,
                    next_.begin() + static_cast<std::int64_t>(row) * capacity);
}

template <class T>
void HypothesisKeys<T>::advance(std::span<const std::int32_t> parents) {
    const auto rows = static_cast<std::int64_t>(parents.size());
    std::int64_t capacity = store_.capacity();
    if (positions_ + rows > capacity)
        capacity = whole_groups<T>(std::max(2 * capacity, positions_ + rows));
    inherit(parents, capacity);
    if (capacity > store_.capacity())
        store_.grow(capacity);
    std::swap(kept_, next_);
    newest_.clear();
    std::int64_t last = 0;
    for (std::int64_t position = 0; position < positions_ + rows; ++position) {
        bool held = false;
        for (std::int64_t row = 0; row < rows; ++row)
            held = held || kept_[static_cast<std::size_t>(row * capacity + position)] != T(0);
        if (!held && static_cast<std::int64_t>(newest_.size()) < rows) {
            const auto row = static_cast<std::int64_t>(newest_.size());
            kept_[static_cast<std::size_t>(row * capacity + position)] = T(1);
            newest_.push_back(position);
            held = true;
        }
        if (held)
            last = position + 1;
    }
    positions_ = last;
}

template class KeyStore<float>;
template class KeyStore<double>;
template class HypothesisKeys<float>;
template class HypothesisKeys<double>;

}  // namespace hetseq::detail
