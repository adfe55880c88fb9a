#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

class HostComm;
class ShardSet;

/// Which data a corpus holds: its datasets, its shards' names and sizes, and a checksum of a few of
/// its rows. Folders and ways of storing do not count.
struct CorpusIdentity {
    struct Shard {
        std::string name;        // without its folder
        std::int64_t bytes = 0;  // of the file
        std::int64_t samples = 0;
        std::vector<std::int64_t>
            rows{};              // that the checksum is of, ascending; none in most shards
        std::string checksum{};  // XXH64 of their values, all datasets; empty: no rows
        friend bool operator==(const Shard&, const Shard&) = default;
    };
    std::vector<std::string> datasets;  // "images (28, 28)"
    std::vector<Shard> shards;          // in the order of the corpus
    friend bool operator==(const CorpusIdentity&, const CorpusIdentity&) = default;
};

/// The rows whose values tell a corpus from another, by shard: at most 64 in at most 16 shards, and
/// at most one of a chunk of the dataset that takes most of a shard. A pure function of the
/// headers.
std::vector<std::vector<std::int64_t>> telling_rows(const ShardSet& shards);

/// Collective over `world`; each rank reads some of the shards. The rows are those of `before`,
/// which may be null, where it has as many samples in each shard, so that its checksums can be
/// compared with the result's. The first error in file order is thrown on all ranks: IoError. Uses
/// HDF5 on the calling thread.
CorpusIdentity identify_corpus(const HostComm& world,
                               const ShardSet& shards,
                               const CorpusIdentity* before);

/// How the data of `here` differ from those of `there`; empty where they do not. A shard of another
/// size is the same where its rows are, and where all shards have other sizes and all rows are the
/// same: a copy that is compressed otherwise.
std::string difference(const CorpusIdentity& here, const CorpusIdentity& there);

/// The number of shards whose sizes differ, of corpora that do not differ otherwise.
std::int64_t resized_shards(const CorpusIdentity& here, const CorpusIdentity& there);

}  // namespace hetseq
