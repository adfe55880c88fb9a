// IDX, as it stands and through the reader, which unzips.
#include "hetseq/prepare/files/idx.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto array = fuzz::parsed([&] { return parse_idx({data, size}, "images"); });
    const bool is_gzip = size > 2 && data[0] == 0x1f && data[1] == 0x8b;
    if (!array && !is_gzip)  // the reader would only say the same
        return 0;
    const fuzz::MemoryFile file{fuzz::text_of(data, size)};
    const auto read = fuzz::parsed([&] { return read_idx(file.path()); });
    if (array)
        FUZZ_CHECK(read && read->shape == array->shape && read->values == array->values);
    return 0;
}
