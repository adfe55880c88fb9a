#pragma once

#include <cstdint>

namespace hetseq::detail {

/// Elements of 64 bytes, which the loops take at once.
template <class T>
inline constexpr std::int64_t group_width = 64 / static_cast<std::int64_t>(sizeof(T));

/// Columns of a panel, the piece of a matrix whose columns lie side by side in memory.
template <class T>
inline constexpr std::int64_t panel_width = 3 * group_width<T>;

/// `count` rounded up to whole groups.
template <class T>
constexpr std::int64_t whole_groups(std::int64_t count) {
    return (count + group_width<T> - 1) / group_width<T> * group_width<T>;
}

/// out = left * right + bias. Each element is one sum in the order of the depth, so that its bits
/// do not depend on the number of rows.
template <class T>
struct PanelProduct {
    const T* left = nullptr;  // (rows, depth), rows `left_stride` apart
    std::int64_t left_stride = 0;
    std::int64_t rows = 0;
    std::int64_t depth = 0;
    const T* panels = nullptr;  // (panels, depth, panel_width), the last one filled up with zeros
    const T* bias = nullptr;    // (panels * panel_width)
    T* out = nullptr;           // (rows, columns), rows `out_stride` apart
    std::int64_t out_stride = 0;
    std::int64_t columns = 0;  // written in whole groups: `out` has room for them
    bool relu = false;
};

void multiply(const PanelProduct<float>& product);
void multiply(const PanelProduct<double>& product);

}  // namespace hetseq::detail
