#include "piece_trie.hpp"

#include <algorithm>

namespace hetseq {

namespace {

constexpr std::int32_t roots = 2;
constexpr std::size_t byte_values = 256;
constexpr std::size_t longest_search =
    64;  // slots; after a longer one, the next begins where it ended

unsigned char byte_at(const PieceTrie::Piece& piece, std::size_t depth) {
    return static_cast<unsigned char>(piece.first[depth]);
}

}  // namespace

PieceTrie::PieceTrie(std::vector<Piece> first, std::vector<Piece> continuing)
    : nodes_(roots + byte_values) {
    for (std::int32_t root = 0; root < roots; ++root)
        nodes_[static_cast<std::size_t>(root)].parent = root;
    for (const auto& [root, pieces] :
         {std::pair{Root::first, &first}, std::pair{Root::continuing, &continuing}}) {
        if (!std::is_sorted(pieces->begin(), pieces->end()))
            std::sort(pieces->begin(), pieces->end());
        add(static_cast<std::int32_t>(root), *pieces, 0);
    }
}

// Adds what is below `node`: `pieces` are those that go through it, sorted.
void PieceTrie::add(std::int32_t node, std::span<const Piece> pieces, std::size_t depth) {
    if (!pieces.empty() && pieces.front().first.size() == depth) {
        nodes_[static_cast<std::size_t>(node)].id = pieces.front().second;
        pieces = pieces.subspan(1);
    }
    if (pieces.empty())
        return;
    std::vector<unsigned char> bytes;
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!bytes.empty() && bytes.back() == byte_at(pieces[i], depth))
            continue;
        bytes.push_back(byte_at(pieces[i], depth));
        begins.push_back(i);
    }
    begins.push_back(pieces.size());

    const std::int32_t base = free_base(bytes);
    nodes_[static_cast<std::size_t>(node)].base = base;
    for (const unsigned char byte : bytes)
        nodes_[static_cast<std::size_t>(base + byte)].parent = node;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        add(base + bytes[i], pieces.subspan(begins[i], begins[i + 1] - begins[i]), depth + 1);
}

// A base from which the slots of all `bytes`, which are sorted, are free. There is always room for
// a whole row of bytes behind it, so that a search needs no check of the array's end.
std::int32_t PieceTrie::free_base(std::span<const unsigned char> bytes) {
    const auto is_free = [this](std::size_t slot) {
        return slot >= nodes_.size() || nodes_[slot].parent < 0;
    };
    while (!is_free(first_free_))
        ++first_free_;
    std::size_t& from = bytes.size() == 1 ? first_free_ : first_free_row_;
    const std::size_t least = std::max<std::size_t>(from, bytes.front()) - bytes.front();
    std::size_t base = least;
    while (!std::all_of(
        bytes.begin(), bytes.end(), [&](unsigned char byte) { return is_free(base + byte); }))
        ++base;
    if (base - least > longest_search)
        from = base;
    if (nodes_.size() < base + byte_values)
        nodes_.resize(base + byte_values);
    return static_cast<std::int32_t>(base);
}

PieceTrie::Match PieceTrie::longest(Root root, std::string_view text) const noexcept {
    Match match;
    auto node = static_cast<std::int32_t>(root);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::int32_t child =
            nodes_[static_cast<std::size_t>(node)].base + static_cast<unsigned char>(text[i]);
        const Node& slot = nodes_[static_cast<std::size_t>(child)];
        if (slot.parent != node)
            break;
        node = child;
        if (slot.id >= 0)
            match = {i + 1, slot.id};
    }
    return match;
}

}  // namespace hetseq
