#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

class HostComm;
class ShardSet;

/// Identifies the data of a corpus: its datasets, its shards' names and sizes, and checksums of a
/// few of its rows. It does not matter in which folder they are and how they are stored.
struct CorpusIdentity {
    struct Shard {
        std::string name;        // without its folder
        std::int64_t bytes = 0;  // of the file
        std::int64_t samples = 0;
        std::vector<std::int64_t>
            rows{};              // whose values the checksum covers, ascending; none in most shards
        std::string checksum{};  // XXH64 of their values, all datasets; empty: no rows
        friend bool operator==(const Shard&, const Shard&) = default;
    };
    std::vector<std::string> datasets;  // "images (28, 28)"
    std::vector<Shard> shards;          // in the order of the corpus
    friend bool operator==(const CorpusIdentity&, const CorpusIdentity&) = default;
};

/// The rows whose values identify a corpus, by shard. There are at most 64, in at most 16 shards,
/// and at most one in each chunk of the largest dataset. They depend only on the headers.
std::vector<std::vector<std::int64_t>> telling_rows(const ShardSet& shards);

/// Collective over `world`; each rank reads some of the shards. `before` may be null. If its shards
/// have as many samples, the same rows are read, so that the checksums can be compared. All ranks
/// throw the first error in file order: IoError. Uses HDF5 on the calling thread.
CorpusIdentity identify_corpus(const HostComm& world,
                               const ShardSet& shards,
                               const CorpusIdentity* before);

/// Says how the data of `here` differ from the data of `there`; empty where they do not. A shard of
/// another size counts as the same if its rows are the same. So does a shard without rows, if all
/// shards have other sizes and all rows are the same: that is a copy with another compression.
std::string difference(const CorpusIdentity& here, const CorpusIdentity& there);

/// The number of shards whose sizes differ, of corpora that do not differ otherwise.
std::int64_t resized_shards(const CorpusIdentity& here, const CorpusIdentity& there);

}  // namespace hetseq
