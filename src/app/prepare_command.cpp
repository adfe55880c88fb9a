#include <cstdio>

#include "hetseq/util/error.hpp"

#include "command_words.hpp"

#include "hetseq/data/prepare_images.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

constexpr const char* usage = "hetseq prepare images IDX... --output DIR [--shards N]";

struct Words {
    std::string kind;
    PrepareImagesOptions options;
};

Words read_words(const std::vector<std::string>& words) {
    po::options_description known;
    known.add_options()("output", po::value<std::string>()->required())(
        "shards", po::value<int>()->default_value(1));
    const po::variables_map values = parse_command_words(known, words, usage);
    if (values.count("word") == 0)
        throw BadUsage("nothing to prepare", "", usage);
    auto given = values["word"].as<std::vector<std::string>>();
    Words result{given.front(), {}};
    result.options.inputs.assign(given.begin() + 1, given.end());
    result.options.output = values["output"].as<std::string>();
    result.options.shards = values["shards"].as<int>();
    return result;
}

}  // namespace

int prepare_command(const CommandContext& context) {
    const Words words = read_words(context.words);
    if (words.kind != "images")
        throw BadUsage("cannot prepare '" + words.kind + "'", "", usage);
    for (const PreparedShard& shard : prepare_images(words.options))
        std::printf(
            "%s: %lld samples\n", shard.path.c_str(), static_cast<long long>(shard.samples));
    return 0;
}

}  // namespace hetseq
