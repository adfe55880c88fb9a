// Dictionaries: each word that one has gives its id, and any line ids that it has. The words of any
// text make one.
#include "hetseq/text/dictionary.hpp"

#include <memory>
#include <vector>

#include "hetseq/text/utf8.hpp"

#include "fuzz/fuzz.hpp"
#include "text/vocabulary_kind.hpp"

using namespace hetseq;

namespace {

using Dictionary = std::shared_ptr<const VocabularyKind>;

constexpr std::int32_t first_word = 3;  // behind the special ones

std::vector<std::int32_t> ids_of(const Dictionary& dictionary, std::string_view line) {
    std::vector<std::int32_t> ids;
    dictionary->encode(line, ids);
    for (const std::int32_t id : ids)
        FUZZ_CHECK(id >= 0 && id < dictionary->size());
    return ids;
}

void check_words(const Dictionary& dictionary) {
    for (std::int32_t id = first_word; id < dictionary->size(); ++id)
        FUZZ_CHECK(ids_of(dictionary, dictionary->piece(id)) == std::vector{id});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    const auto parse = [](std::string_view bytes) {
        return fuzz::parsed([&] { return Dictionary{make_dictionary(bytes, "dictionary")}; });
    };
    if (is_dictionary(text)) {
        if (const auto dictionary = parse(text)) {
            check_words(*dictionary);
            (*dictionary)->decode(ids_of(*dictionary, text));
        }
    }
    if (valid_utf8_bytes(text) != text.size())
        return 0;
    WordCounts counts;
    counts.add_line(text);
    const std::string bytes = counts.dictionary(0);
    const auto counted = parse(bytes);
    FUZZ_CHECK(counted);
    check_words(*counted);
    return 0;
}
