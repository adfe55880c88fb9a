// Words of `hetseq train`, one a line.
#include "fuzz/options_round_trip.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::string> words(1);
    for (const char c : fuzz::text_of(data, size)) {
        if (c == '\n')
            words.emplace_back();
        else if (c != '\0')  // no word of a command line holds one
            words.back() += c;
    }
    if (const auto parsed = fuzz::parsed([&] { return parse_command_line(words); }))
        fuzz::check_options(parsed->values);
    return 0;
}
