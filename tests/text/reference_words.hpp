#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/text/bert/basic_tokenizer.hpp"
#include "hetseq/text/bert/bert_tokenizer.hpp"
#include "hetseq/text/bert/valid_characters.hpp"
#include "hetseq/text/code_points.hpp"

namespace hetseq::test {

inline std::vector<std::string> words_in(BasicTokenizer& tokenizer, const std::string& text) {
    const BasicWords& words = tokenizer.words(decode_valid_characters(text));
    std::vector<std::string> found;
    for (std::size_t i = 0; i < words.size(); ++i)
        found.push_back(encode_utf8(words.word(i)));
    return found;
}

inline std::vector<std::int32_t> ids_in(BertTokenizer& tokenizer, const std::string& text) {
    const auto ids = tokenizer.encode(text);
    return {ids.begin(), ids.end()};
}

inline std::vector<std::int32_t> placed_ids_in(BertTokenizer& tokenizer, const std::string& text) {
    std::vector<std::int32_t> ids;
    for (const PlacedPiece& piece : tokenizer.encode_with_places(text))
        ids.push_back(piece.id);
    return ids;
}

}  // namespace hetseq::test
