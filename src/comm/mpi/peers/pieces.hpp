#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>

namespace hetseq {

/// Stretches of memory, one after the other, cut into pieces. `Byte` is std::byte, const or not.
template <class Byte>
class Pieces {
public:
    explicit Pieces(std::size_t most_bytes) : most_bytes_{most_bytes} {}

    void add(std::span<Byte> memory) {
        if (!memory.empty())
            stretches_.push_back(memory);
    }
    bool empty() const noexcept { return stretches_.empty(); }
    /// Not longer than `most_bytes`, and never empty.
    std::span<Byte> take() {
        std::span<Byte>& first = stretches_.front();
        const std::span<Byte> piece = first.first(std::min(most_bytes_, first.size()));
        first = first.subspan(piece.size());
        if (first.empty())
            stretches_.pop_front();
        return piece;
    }

private:
    std::size_t most_bytes_;
    std::deque<std::span<Byte>> stretches_;
};

}  // namespace hetseq
