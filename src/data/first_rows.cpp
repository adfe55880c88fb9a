#include "hetseq/data/first_rows.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/row_offsets.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"

#include "data/blocks/row_copy.hpp"

namespace hetseq {

namespace {

ShardSet first_filled_shard(const std::string& spec, const CorpusSchema& schema) {
    initialize_hdf5();
    for (const std::string& path : expand_shard_spec(spec)) {
        const FileStamp stamp = stamp_readable_file(path);
        ShardHeader header = read_shard_header(path, schema);
        if (header.samples > 0)
            return {{{.path = path, .header = std::move(header), .stamp = stamp}}, schema};
    }
    throw BadData("the shards of " + spec + " hold no sample", "", "name shards that hold some");
}

RowLengths lengths_of(const RowOffsets& offsets) {
    RowLengths lengths;
    for (const std::vector<std::int64_t>& of_field : offsets) {
        auto& own = lengths.emplace_back();
        for (std::size_t i = 1; i < of_field.size(); ++i)
            own.push_back(static_cast<std::int32_t>(of_field[i] - of_field[i - 1]));
    }
    return lengths;
}

// Values from the beginning of the dataset, as many as `target` has.
void read_values(hid_t file,
                 const Shard& shard,
                 const FieldSchema& field,
                 const StoredType& stored,
                 const at::Tensor& target) {
    if (target.numel() == 0)
        return;
    const Hdf5Dataset dataset = open_hdf5_dataset(file, shard.path, field.name);
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset.get()))};
    const std::vector<hsize_t> start(static_cast<std::size_t>(target.dim()), 0);
    const std::vector<hsize_t> count(target.sizes().begin(), target.sizes().end());
    HETSEQ_HDF5_TRY(H5Sselect_hyperslab(
        space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
    const Hdf5Space memory{
        HETSEQ_HDF5_TRY(H5Screate_simple(static_cast<int>(target.dim()), count.data(), nullptr))};
    const ElementType type =
        field.type == ElementType::boolean ? checked_type(stored, field.type) : field.type;
    const Hdf5Type in_memory = memory_type(stored, type);
    if (H5Dread(dataset.get(),
                in_memory.get(),
                memory.get(),
                space.get(),
                H5P_DEFAULT,
                target.data_ptr()) < 0)
        throw IoError(shard.path + ": dataset '" + field.name + "' cannot be read",
                      hdf5_error_message(),
                      "check or copy the file again");
}

}  // namespace

LoadedShare::Rows first_rows(const std::string& spec,
                             const CorpusSchema& schema,
                             std::int64_t most) {
    const ShardSet shards = first_filled_shard(spec, schema);
    const Shard& shard = shards.shards().front();
    const std::int64_t samples = std::min(most, shard.samples());
    const RowLengths lengths = shards.ragged_fields().empty()
                                   ? RowLengths{}
                                   : lengths_of(OffsetsFile{shards, 0}.read(0, samples));
    LoadedShare::Rows rows = make_rows(shards, samples, lengths);
    auto* ids = rows.sample_ids.data_ptr<std::int64_t>();
    std::iota(ids, ids + samples, 0);
    const Hdf5File file = open_hdf5(shard.path);
    for (std::size_t i = 0; i < schema.fields.size(); ++i)
        read_values(file.get(),
                    shard,
                    schema.fields[i],
                    shard.header.datasets[i].type,
                    rows.fields.at(schema.fields[i].name));
    return rows;
}

}  // namespace hetseq
