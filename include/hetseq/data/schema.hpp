#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/data/element_type.hpp"

namespace hetseq {

/// One dataset of a corpus: sample i is row i.
struct FieldSchema {
    std::string name{};  // of the HDF5 dataset
    int rank = 1;        // dimensions, the samples' included
    /// How values are kept in memory. Integers of any HDF5 integer type convert to an integer type,
    /// floating point of 2, 4 or 8 bytes to a floating-point type; h5py's bool and 8-bit integers 0
    /// and 1 to boolean.
    ElementType type = ElementType::int32;
    /// Expected row shape, -1 where any length is right (the same in all shards).
    std::vector<std::int64_t> row_shape{};
    /// Another field whose row shape this one must have; empty: none.
    std::string same_row_shape_as{};
    /// The most a row's first dimension may have; 0: any.
    std::int64_t max_row_length = 0;
    // Content bounds, both inclusive. A value of floating point must be finite with none, too.
    std::optional<double> minimum{};
    std::optional<double> maximum{};
    /// Another field whose row length every value must be below (positions in a sequence); empty:
    /// none.
    std::string below_row_length_of{};
    std::string meaning{};  // what the bounds mean: "ids of the vocabulary (vocab_size 30522)"
};

/// The contract of a corpus's files. A dataset that is not named here is an error too.
struct CorpusSchema {
    std::string kind;  // "images", "BERT pretraining": what error messages call it
    std::vector<FieldSchema> fields;
};

}  // namespace hetseq
