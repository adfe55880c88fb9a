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
    static const CommandDescription train{
        "train",
        "",
        {{.word = "",
          .help = "",
          .arguments = {{"CONFIG.cfg", CommandArgument::Count::optional, ""}},
          .options = option_table()}}};
    if (const auto parsed =
            fuzz::parsed([&] { return parse_command_words(train, words, option_table()); }))
        fuzz::check_options(parsed->options);
    return 0;
}
