// MANIFEST.json: what is read and written again reads the same.
#include "hetseq/util/files/manifest.hpp"

#include "fuzz/fuzz.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text{fuzz::text_of(data, size)};
    const auto manifest = fuzz::parsed([&] { return parse_manifest(text, Manifest::file_name); });
    if (manifest)
        FUZZ_CHECK(parse_manifest(manifest_json(*manifest), Manifest::file_name).files ==
                   manifest->files);
    return 0;
}
