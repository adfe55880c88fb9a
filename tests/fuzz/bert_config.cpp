// A model's config.json: what is read and written again reads the same.
#include "hetseq/model/bert/bert_config.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file{fuzz::text_of(data, size)};
    const auto config = fuzz::parsed([&] { return read_bert_config(file.path()); });
    if (!config)
        return 0;
    const std::string text = to_json(*config);
    const fuzz::MemoryFile written{text};
    FUZZ_CHECK(to_json(read_bert_config(written.path())) == text);
    return 0;
}
