#include "hetseq/text/subwords/sequence_pieces.hpp"

#include <span>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t special_of_sentence = 2;  // [CLS], [SEP]
constexpr std::int64_t special_of_pair = 3;

// Leaves `room` pieces of both. Returns how many went.
std::int64_t cut_longer(std::vector<std::int32_t>& first,
                        std::vector<std::int32_t>& second,
                        std::int64_t room) {
    std::int64_t cut = 0;
    for (; std::ssize(first) + std::ssize(second) > room; ++cut)
        (first.size() > second.size() ? first : second).pop_back();
    return cut;
}

}  // namespace

SequenceEncoder::SequenceEncoder(const WordPiece& pieces,
                                 const BasicTokenizerOptions& options,
                                 std::int64_t max_length)
    : tokenizer_{pieces, {.basic = options}},
      begin_{pieces.id_of("[CLS]")},
      end_{pieces.id_of("[SEP]")},
      max_length_{max_length} {
    HETSEQ_ASSERT(max_length >= special_of_pair + 2);
}

SequencePieces SequenceEncoder::encode(std::string_view first,
                                       const std::optional<std::string>& second) {
    const auto pieces_of = [&](std::string_view text) {
        const std::span<const std::int32_t> ids = tokenizer_.encode(text);
        return std::vector<std::int32_t>(ids.begin(), ids.end());
    };
    std::vector<std::int32_t> head = pieces_of(first);
    std::vector<std::int32_t> tail;
    if (second)
        tail = pieces_of(*second);
    SequencePieces row;
    row.cut =
        cut_longer(head, tail, max_length_ - (second ? special_of_pair : special_of_sentence));
    row.ids.push_back(begin_);
    row.ids.insert(row.ids.end(), head.begin(), head.end());
    row.ids.push_back(end_);
    row.second = std::ssize(row.ids);
    if (second) {
        row.ids.insert(row.ids.end(), tail.begin(), tail.end());
        row.ids.push_back(end_);
    }
    return row;
}

}  // namespace hetseq
