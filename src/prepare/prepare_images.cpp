#include "hetseq/prepare/prepare_images.hpp"

#include <filesystem>
#include <list>
#include <set>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/data/hdf5/hdf5_image.hpp"
#include "hetseq/prepare/files/idx.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

struct NamedArray {
    std::string path;
    IdxArray array;
    std::int64_t samples() const { return array.shape[0]; }
};

struct Pair {
    std::string name;  // "train"
    NamedArray images;
    NamedArray labels;
};

// "train" of "train-images-idx3-ubyte.gz"; without "images" or "labels" the name up to its first
// dot.
std::string set_name(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    for (const char* kind : {"images", "labels"}) {
        const std::size_t found = name.find(kind);
        if (found != std::string::npos && found >= 2)
            return name.substr(0, found - 1);  // a separator stands between
    }
    return name.substr(0, name.find('.'));
}

void read_input(const std::string& path,
                std::vector<NamedArray>& images,
                std::vector<NamedArray>& labels) {
    NamedArray input{path, read_idx(path)};
    const std::size_t dimensions = input.array.shape.size();
    if (dimensions == 3)
        images.push_back(std::move(input));
    else if (dimensions == 1)
        labels.push_back(std::move(input));
    else
        throw BadData(path + " holds neither images nor labels",
                      "found " + std::to_string(dimensions) +
                          " dimensions, expected 3 (images) or 1 (labels)",
                      "name pairs of MNIST-like IDX files");
}

Pair make_pair(NamedArray images, NamedArray labels) {
    if (images.samples() != labels.samples())
        throw BadData(images.path + " and " + labels.path + " do not belong together",
                      std::to_string(images.samples()) + " images, " +
                          std::to_string(labels.samples()) + " labels",
                      "name images and labels in the same order");
    std::string name = set_name(images.path);
    return {std::move(name), std::move(images), std::move(labels)};
}

std::vector<Pair> read_pairs(const std::vector<std::string>& inputs) {
    std::vector<NamedArray> images;
    std::vector<NamedArray> labels;
    for (const std::string& path : inputs)
        read_input(path, images, labels);
    if (images.size() != labels.size() || images.empty())
        throw BadConfig("images and labels do not pair up",
                        std::to_string(images.size()) + " files of images, " +
                            std::to_string(labels.size()) + " of labels",
                        "name one file of labels for each file of images");
    std::vector<Pair> pairs;
    std::set<std::string> names;
    for (std::size_t i = 0; i < images.size(); ++i) {
        pairs.push_back(make_pair(std::move(images[i]), std::move(labels[i])));
        if (!names.insert(pairs.back().name).second)
            throw BadConfig("two inputs would be written as " + pairs.back().name + "-*.h5",
                            pairs.back().images.path + " is the second",
                            "prepare them into different folders");
    }
    return pairs;
}

std::vector<std::byte> shard_image(const Pair& pair, std::int64_t begin, std::int64_t end) {
    const std::vector<std::int64_t>& shape = pair.images.array.shape;
    const auto rows = static_cast<hsize_t>(end - begin);
    const auto height = static_cast<hsize_t>(shape[1]);
    const auto width = static_cast<hsize_t>(shape[2]);
    const auto first_pixel = static_cast<std::size_t>(begin * shape[1] * shape[2]);
    return make_hdf5_image([&](hid_t file) {
        write_hdf5_dataset(file,
                           "images",
                           H5T_NATIVE_UINT8,
                           {rows, height, width},
                           pair.images.array.values.data() + first_pixel);
        write_hdf5_dataset(
            file, "labels", H5T_NATIVE_UINT8, {rows}, pair.labels.array.values.data() + begin);
    });
}

}  // namespace

std::vector<PreparedShard> prepare_images(const PrepareImagesOptions& options) {
    if (options.shards < 1 || options.shards > most_shards)
        throw BadConfig("--shards " + std::to_string(options.shards), "", "give 1 to 99999");
    const std::vector<Pair> pairs = read_pairs(options.inputs);
    prepare_shard_folder(options.output, options.overwrite);
    std::list<AtomicFile> files;  // they appear together, once all are written
    std::vector<PreparedShard> shards;
    for (const Pair& pair : pairs) {
        for (int i = 0; i < options.shards; ++i) {
            const std::int64_t begin = pair.images.samples() * i / options.shards;
            const std::int64_t end = pair.images.samples() * (i + 1) / options.shards;
            const fs::path path =
                fs::path(options.output) / shard_name(pair.name, i, options.shards);
            const std::vector<std::byte> image = shard_image(pair, begin, end);
            files.emplace_back(path).write(image.data(), image.size());
            files.back().finish();
            shards.push_back({path.string(), end - begin});
        }
    }
    begin_replacing_shards(options.output);
    for (AtomicFile& file : files)
        file.commit();
    end_replacing_shards(options.output);
    return shards;
}

}  // namespace hetseq
