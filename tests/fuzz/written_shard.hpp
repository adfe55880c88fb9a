#pragma once

#include <string>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>

#include "hetseq/data/hdf5.hpp"

namespace hetseq::fuzz {

/// A value of any integer type of up to 64 bits.
struct StoredValue {
    bool is_signed = true;
    std::uint64_t bits = 0;

    bool is(std::int64_t value) const {
        return (is_signed || value >= 0) && bits == static_cast<std::uint64_t>(value);
    }
};

/// Writes a file that HDF5 finds valid, whose links, types, extents, storage and values `input`
/// chooses, and returns its bytes and the values written, by field of `shard_schema`: none where
/// the field is no dataset of integers, or is too large to be written.
struct WrittenShard {
    std::vector<std::byte> bytes;
    std::vector<std::vector<StoredValue>> values;
};
WrittenShard write_shard(FuzzedDataProvider& input);

}  // namespace hetseq::fuzz
