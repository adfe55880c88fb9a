#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"

namespace hetseq {

struct PrepareImagesOptions {
    std::vector<std::string> inputs;  // IDX files, images and labels, paired in the order given
    std::string output;               // folder, made where it is missing
    std::int64_t shards = 1;          // of each pair
    bool overwrite = false;           // replaces the shards that the folder holds
};

OptionsOf<PrepareImagesOptions> prepare_images_options();

/// A shard that was written.
struct PreparedShard {
    std::string path;
    std::int64_t samples = 0;
};

/// Converts pairs of IDX files (plain or gzip), images (3 dimensions) and labels (1 dimension), to
/// HDF5 shards with `images` uint8 (n, height, width) and `labels` uint8 (n).
/// `train-images-idx3-ubyte.gz` becomes OUTPUT/train-00000-of-00002.h5 and so on. Shards appear
/// complete, and only when all inputs are good.
/// Throws BadData, BadConfig, MissingInput or IoError.
std::vector<PreparedShard> prepare_images(const PrepareImagesOptions& options);

}  // namespace hetseq
