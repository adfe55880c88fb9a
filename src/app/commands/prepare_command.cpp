#include <cstdio>

#include "hetseq/data/prepare_images.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_shards = 99999;  // five digits in their names

}  // namespace

int prepare_command(const CommandContext& context) {
    const CommandWords& words = context.words;
    const PrepareImagesOptions options{
        .inputs = words.arguments,
        .output = words.text("output"),
        .shards = static_cast<int>(words.whole_number("shards", 1, most_shards))};
    for (const PreparedShard& shard : prepare_images(options))
        std::printf(
            "%s: %lld samples\n", shard.path.c_str(), static_cast<long long>(shard.samples));
    return 0;
}

}  // namespace hetseq
