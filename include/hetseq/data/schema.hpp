#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/data/element_type.hpp"

namespace hetseq {

class HostComm;

/// The files that stand for data that no files are named for.
struct LocatedData {
    std::string files;              // as `Corpus` takes them
    std::int64_t block_length = 0;  // samples, where --block-length gives none; 0: the files tell
    /// What tells these data from others, beside the files: "sample 17 is 9f3ac1b2".
    std::vector<std::string> identity{};
};

/// One field of a corpus: sample i is row i of a dataset. The rows of a ragged field have unequal
/// lengths. Its dataset NAME has one dimension and holds the values of all rows, end to end.
/// Dataset NAME_offsets holds integers of 8 bytes, one more than there are samples: where each row
/// begins, from 0, and last the number of values.
struct FieldSchema {
    std::string name{};  // of the HDF5 dataset
    int rank = 1;        // dimensions, the samples' included
    /// How values are kept in memory. Integers of any HDF5 integer type convert to an integer type,
    /// floating point of 2, 4 or 8 bytes to a floating-point type; h5py's bool and 8-bit integers 0
    /// and 1 to boolean.
    ElementType type = ElementType::int32;
    /// Expected row shape, -1 where any length is right (the same in all shards).
    std::vector<std::int64_t> row_shape{};
    bool is_ragged = false;  // then `rank` is 1 and `row_shape` empty
    /// The values of one position of a ragged row, such as the 80 of a frame of a spectrogram.
    /// Every row has whole positions, and its length is their number.
    std::int64_t position_values = 1;
    /// Whether batches are planned by the lengths of this ragged field's rows. Those of an encoded
    /// image do not tell how much work it is.
    bool sets_lengths = true;
    /// Another field whose row shape this one must have; empty: none. If this field is ragged, the
    /// other one is too, and their rows must have the same lengths.
    std::string same_row_shape_as{};
    /// The most a row's first dimension may have; 0: any. It bounds every row of a ragged field.
    std::int64_t max_row_length = 0;
    /// The least that every row of a ragged field has.
    std::int64_t min_row_length = 0;
    // The smallest and the largest value. Floating-point values must be finite even without them.
    std::optional<double> minimum{};
    std::optional<double> maximum{};
    /// Another field; empty: none. Every value must be below the length of that field's row of the
    /// same sample (positions in a sequence).
    std::string below_row_length_of{};
    std::string meaning{};   // what the bounds mean: "ids of the vocabulary (vocab_size 30522)"
    bool is_target = false;  // only losses and metrics need it: data for predictions may lack it
};

/// What stands beside the fields, the same in every shard: a vocabulary.
struct AttachmentSchema {
    /// A dataset of bytes, which every shard has, or a text attribute of the file, which shards
    /// that other programs wrote may lack.
    enum class Place { dataset, attribute };

    std::string name{};
    std::uint64_t xxh64 = 0;  // that its bytes must have
    std::string meaning{};    // "the vocabulary of the training data"
    Place place = Place::dataset;
};

/// The contract of a corpus's files. A dataset that is not named here is an error too.
struct CorpusSchema {
    std::string kind;  // "images", "BERT pretraining": what error messages call it
    std::vector<FieldSchema> fields;
    /// The ragged field whose values are the units of work (target tokens); empty: samples are.
    std::string units_field{};
    std::vector<AttachmentSchema> attachments{};
    /// Collective: finds the files that stand for data of this name, or makes them. Throws on all
    /// ranks. Null: the name names files.
    std::function<LocatedData(const HostComm& world, const std::string& name)> locate{};
};

/// Collective where `schema` locates data; else `name` itself.
LocatedData locate(const HostComm& world, const std::string& name, const CorpusSchema& schema);

/// The dataset that says where the rows of ragged field `name` begin: "NAME_offsets".
std::string offsets_name(const std::string& name);

/// The ragged fields of `schema`: their indices, in its order.
std::vector<std::size_t> ragged_fields(const CorpusSchema& schema);

/// Those of them whose lengths batches are planned by.
std::vector<std::size_t> length_fields(const CorpusSchema& schema);

/// The index of field `name`; nothing where there is none.
std::optional<std::size_t> find_field(const CorpusSchema& schema, const std::string& name);

/// Throws InternalError where the ragged fields of `schema` contradict themselves.
void check_ragged_fields(const CorpusSchema& schema);

}  // namespace hetseq
