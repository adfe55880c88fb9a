#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hetseq {

/// Finds the longest piece at the start of a text. The pieces that begin a word and those that
/// continue one have a root each. The nodes form a double array (Aoki, 'An Efficient Digital Search
/// Algorithm by Using a Double-Array Structure', 1989): a node's child by byte b is in the slot
/// base + b, if that slot names the node as its parent.
class PieceTrie {
public:
    using Piece = std::pair<std::string_view, std::int32_t>;  // text and id
    enum class Root : std::int32_t { first = 0, continuing = 1 };

    /// Both without equal or empty texts, in any order.
    PieceTrie(std::vector<Piece> first, std::vector<Piece> continuing);

    struct Match {
        std::size_t bytes = 0;  // 0: no piece begins the text
        std::int32_t id = -1;
    };
    Match longest(Root root, std::string_view text) const noexcept;

private:
    struct Node {
        std::int32_t base = 0;
        std::int32_t parent = -1;  // -1: a free slot
        std::int32_t id = -1;      // -1: no piece ends here
    };

    void add(std::int32_t node, std::span<const Piece> pieces, std::size_t depth);
    std::int32_t free_base(std::span<const unsigned char> bytes);

    std::vector<Node> nodes_;
    // Where a search for free slots begins: for one byte, and for several.
    std::size_t first_free_ = 0;
    std::size_t first_free_row_ = 0;
};

}  // namespace hetseq
