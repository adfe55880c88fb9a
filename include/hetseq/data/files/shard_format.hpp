#pragma once

namespace hetseq {

/// Which HDF5 may read a shard that is written.
enum class ShardFormat {
    earliest,         // any
    large_attributes  // 1.8 (2008) or later; attributes may be larger than 64 KiB
};

constexpr unsigned shard_gzip_level = 4;  // of compressed datasets

}  // namespace hetseq
