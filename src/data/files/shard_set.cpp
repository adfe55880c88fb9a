#include "hetseq/data/files/shard_set.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/files/first_failure.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

namespace {

void check_same_kind(const Shard& first, const Shard& shard, const CorpusSchema& schema) {
    for (std::size_t i = 0; i < schema.fields.size(); ++i) {
        const auto& expected = first.header.datasets[i].row_shape;
        const auto& found = shard.header.datasets[i].row_shape;
        if (found != expected)
            throw BadData(shard.path + ": dataset '" + schema.fields[i].name +
                              "' has rows unlike the other shards",
                          "found " + row_shape_text(found) + ", expected " +
                              row_shape_text(expected) + " as in " + first.path,
                          "train on shards of one kind");
    }
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = text.find('\n', begin);
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

// A line for the place of the name, and one for the path.
std::vector<NamedFile> agree_on_files(const HostComm& world, const std::string& spec) {
    const std::string found = agree_on(world, [&] {
        std::string text;
        if (world.rank() == 0) {
            for (const NamedFile& file : expand_shard_names(spec))
                text += std::to_string(file.name) + '\n' + file.path + '\n';
        }
        return text;
    });
    const std::vector<std::string> texts = lines(world.broadcast(found, 0));
    std::vector<NamedFile> files;
    for (std::size_t i = 0; i + 1 < texts.size(); i += 2)
        files.push_back({texts[i + 1], std::stoll(texts[i])});
    return files;
}

// Every rank must see every file, and the same one: copies on local disks may be incomplete.
std::vector<FileStamp> agree_on_stamps(const HostComm& world,
                                       const std::vector<std::string>& paths) {
    const auto stamps = agree_on(world, [&] {
        std::vector<FileStamp> all;
        for (const std::string& path : paths)
            all.push_back(stamp_readable_file(path));
        return all;
    });
    std::vector<std::int64_t> sizes;
    for (const FileStamp& stamp : stamps)
        sizes.push_back(stamp.bytes);
    world.broadcast(std::as_writable_bytes(std::span{sizes}), 0);
    agree_on(world, [&] {
        for (std::size_t i = 0; i < paths.size(); ++i) {
            if (stamps[i].bytes != sizes[i])
                throw BadData(paths[i] + " is not the same file on all ranks",
                              std::to_string(sizes[i]) + " bytes on rank 0, " +
                                  std::to_string(stamps[i].bytes) + " on rank " +
                                  std::to_string(world.rank()),
                              "copy it to that rank's host again");
        }
    });
    return stamps;
}

// Rank r reads the headers of shards r, r + ranks and so on. So each shard is opened once, whatever
// the number of ranks.
std::vector<ShardHeader> read_headers(const HostComm& world,
                                      const std::vector<std::string>& paths,
                                      const CorpusSchema& schema) {
    std::vector<ShardHeader> own;
    std::optional<OrderedFailure> failure;
    const auto ranks = static_cast<std::size_t>(world.size());
    for (auto i = static_cast<std::size_t>(world.rank()); i < paths.size() && !failure;
         i += ranks) {
        try {
            own.push_back(read_shard_header(paths[i], schema));
        } catch (...) {
            failure = OrderedFailure{static_cast<std::int64_t>(i), std::current_exception()};
        }
    }
    agree_on_first(world, failure);

    std::vector<ShardHeader> headers(paths.size());
    const std::vector<std::string> texts = world.all_gather(to_text(own));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::size_t place = rank;
        for (ShardHeader& header : shard_headers_from_text(texts[rank])) {
            headers[place] = std::move(header);
            place += ranks;
        }
    }
    return headers;
}

}  // namespace

ShardSet::ShardSet(std::vector<Shard> shards, CorpusSchema schema)
    : shards_{std::move(shards)},
      schema_{std::move(schema)},
      ragged_fields_{hetseq::ragged_fields(schema_)} {
    check_ragged_fields(schema_);
    HETSEQ_ASSERT(!shards_.empty());
    std::vector<std::int64_t> values(ragged_fields_.size(), 0);
    for (Shard& shard : shards_) {
        check_same_kind(shards_.front(), shard, schema_);
        shard.offset = samples_;
        samples_ += shard.samples();
        shard.value_offsets = values;
        for (std::size_t k = 0; k < values.size(); ++k)
            values[k] += shard.header.datasets[ragged_fields_[k]].values;
    }
    if (samples_ == 0)
        throw BadData("the corpus is empty",
                      std::to_string(shards_.size()) + " shard(s) from " + shards_.front().path +
                          " on hold no sample",
                      "name files that hold samples");
}

const std::vector<std::int64_t>& ShardSet::row_shape(std::size_t field) const {
    return shards_.front().header.datasets.at(field).row_shape;
}

std::int64_t ShardSet::values(std::size_t field) const {
    return std::accumulate(
        shards_.begin(), shards_.end(), std::int64_t{0}, [&](std::int64_t sum, const Shard& shard) {
            return sum + shard.header.datasets.at(field).values;
        });
}

std::vector<ShardRows> ShardSet::rows(std::int64_t begin, std::int64_t end) const {
    HETSEQ_ASSERT(begin >= 0 && begin <= end && end <= samples_);
    const auto behind = std::upper_bound(
        shards_.begin(), shards_.end(), begin, [](std::int64_t sample, const Shard& shard) {
            return sample < shard.offset + shard.samples();
        });
    std::vector<ShardRows> parts;
    for (auto shard = behind; shard != shards_.end() && shard->offset < end; ++shard) {
        const std::int64_t first = std::max(begin - shard->offset, std::int64_t{0});
        const std::int64_t last = std::min(end - shard->offset, shard->samples());
        if (first < last)
            parts.push_back({static_cast<std::size_t>(shard - shards_.begin()), first, last});
    }
    return parts;
}

ShardSet open_shard_set(const HostComm& world,
                        const std::string& spec,
                        const CorpusSchema& schema) {
    initialize_hdf5();
    const std::vector<NamedFile> files = agree_on_files(world, spec);
    std::vector<std::string> paths;
    for (const NamedFile& file : files)
        paths.push_back(file.path);
    const std::vector<FileStamp> stamps = agree_on_stamps(world, paths);
    std::vector<ShardHeader> headers = read_headers(world, paths, schema);
    std::vector<Shard> shards;
    for (std::size_t i = 0; i < paths.size(); ++i)
        shards.push_back({.path = paths[i],
                          .header = std::move(headers[i]),
                          .stamp = stamps[i],
                          .name = files[i].name});
    return ShardSet(std::move(shards), schema);
}

}  // namespace hetseq
