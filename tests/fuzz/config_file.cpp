// A configuration of options.
#include "fuzz/options_round_trip.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file{fuzz::text_of(data, size)};
    if (const auto values =
            fuzz::parsed([&] { return parse_config_file(file.path(), option_table()); }))
        fuzz::check_options(*values);
    return 0;
}
