// BERT's tokenizer: a vocabulary is refused clearly or can be used, and the fast way gives the ids
// that going step by step gives. The input is a vocabulary, a line of three blanks, and texts, a
// line each.
#include <algorithm>
#include <string>
#include <vector>

#include "hetseq/text/bert/bert_tokenizer.hpp"

#include "fuzz/fuzz.hpp"

using namespace hetseq;

namespace {

constexpr std::string_view border = "\n   \n";

void check_text(BertTokenizer& fast, BertTokenizer& plain, const std::string& text) {
    const auto ids = fast.encode(text);
    const std::vector<std::int32_t> first{ids.begin(), ids.end()};
    const auto again = fast.encode(text);  // its words are in the cache now
    FUZZ_CHECK(std::equal(again.begin(), again.end(), first.begin(), first.end()));
    const auto by_bytes = plain.encode(text);
    FUZZ_CHECK(std::equal(by_bytes.begin(), by_bytes.end(), first.begin(), first.end()));
    const std::vector<PlacedPiece> placed = fast.encode_with_places(text);
    FUZZ_CHECK(placed.size() == first.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
        FUZZ_CHECK(placed[i].id == first[i] && first[i] >= 0 && first[i] < fast.pieces().size());
        FUZZ_CHECK(placed[i].begin < placed[i].end && placed[i].end <= text.size());
    }
}

void check_texts(const WordPiece& pieces, std::string_view texts, unsigned variant) {
    BertTokenizerOptions options{.basic = {(variant & 1) == 0, (variant & 2) == 0}};
    options.most_characters = (variant & 4) == 0 ? 200 : 20;
    if ((variant & 8) != 0)
        options.special = BertTokenizerOptions::SpecialPieces::kept;
    BertTokenizer fast{pieces, options};
    options.scan = BertTokenizerOptions::Scan::plain;
    BertTokenizer plain{pieces, options};
    while (!texts.empty()) {
        const std::string_view line = texts.substr(0, texts.find('\n'));
        texts.remove_prefix(std::min(line.size() + 1, texts.size()));
        check_text(fast, plain, std::string{line});
    }
    check_text(fast, plain, std::string{texts});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = fuzz::text_of(data, size);
    const std::size_t end = input.find(border);
    const std::string vocabulary{input.substr(0, end)};
    const std::string_view texts = end == input.npos ? input : input.substr(end + border.size());
    static const WordPiece small =
        WordPiece::parse("[UNK]\n[MASK]\na\n##b\nab\n##ba\n'\n", "small");
    check_texts(small, texts, static_cast<unsigned>(size));
    const auto pieces = fuzz::parsed([&] { return WordPiece::parse(vocabulary, "vocab.txt"); });
    if (!pieces)
        return 0;
    for (std::int32_t id = 0; id < pieces->size(); ++id)
        FUZZ_CHECK(pieces->find(pieces->piece(id)) == id);
    check_texts(*pieces, texts, static_cast<unsigned>(size / 16));
    return 0;
}
