#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hetseq/data/hdf5/exact_number.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

#include <fuzzer/FuzzedDataProvider.h>

namespace hetseq::fuzz {

/// A value of any integer type of up to 64 bits, or of floating point.
struct StoredValue {
    bool is_signed = true;
    std::uint64_t bits = 0;
    std::optional<double> real{};
    bool is_exact = true;  // in every format; otherwise it is rounded, or refused

    bool is(const Number& number) const {
        if (const auto* value = std::get_if<std::int64_t>(&number))
            return !real && (is_signed || *value >= 0) &&
                   bits == static_cast<std::uint64_t>(*value);
        const double value = std::get<double>(number);
        return real && std::isfinite(value) && (!is_exact || value == *real);
    }
};

/// Writes a file that HDF5 finds valid, whose links, types, extents, storage and values `input`
/// chooses, and returns its bytes and the values written, by field of `shard_schema`: none where
/// the field is not a dataset of numbers, or is too large to be written.
struct WrittenShard {
    std::vector<std::byte> bytes;
    std::vector<std::vector<StoredValue>> values;
};
WrittenShard write_shard(FuzzedDataProvider& input);

}  // namespace hetseq::fuzz
