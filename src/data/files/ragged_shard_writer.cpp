#include "hetseq/data/files/ragged_shard_writer.hpp"

#include <optional>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/hdf5_output.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

namespace {

constexpr hsize_t values_in_chunk = 65536;  // 128 or 256 KiB
constexpr hsize_t offsets_in_chunk = 4096;  // 32 KiB; of numbers too
constexpr std::int64_t most_ids_of_2_bytes = 65536;

// A dataset of one dimension that grows chunk by chunk.
template <class Value>
class GrowingDataset {
public:
    GrowingDataset(hid_t file, const std::string& name, hid_t stored, hid_t native, hsize_t chunk)
        : native_{native}, chunk_{chunk} {
        const hsize_t none = 0;
        const hsize_t unlimited = H5S_UNLIMITED;
        const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(1, &none, &unlimited))};
        const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
        HETSEQ_HDF5_TRY(H5Pset_chunk(create.get(), 1, &chunk));
        HETSEQ_HDF5_TRY(H5Pset_shuffle(create.get()));
        HETSEQ_HDF5_TRY(H5Pset_deflate(create.get(), shard_gzip_level));
        HETSEQ_HDF5_TRY(H5Pset_obj_track_times(create.get(), false));  // the same bytes tomorrow
        dataset_ = Hdf5Dataset{HETSEQ_HDF5_TRY(H5Dcreate2(
            file, name.c_str(), stored, space.get(), H5P_DEFAULT, create.get(), H5P_DEFAULT))};
        waiting_.reserve(chunk);
    }

    void append(Value value) {
        waiting_.push_back(value);
        if (waiting_.size() == chunk_)
            write();
    }

    void write() {
        const hsize_t count = waiting_.size();
        if (count == 0)
            return;
        const hsize_t length = written_ + count;
        HETSEQ_HDF5_TRY(H5Dset_extent(dataset_.get(), &length));
        const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset_.get()))};
        const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(1, &count, nullptr))};
        HETSEQ_HDF5_TRY(
            H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &written_, nullptr, &count, nullptr));
        HETSEQ_HDF5_TRY(H5Dwrite(
            dataset_.get(), native_, memory.get(), space.get(), H5P_DEFAULT, waiting_.data()));
        written_ = length;
        waiting_.clear();
    }

private:
    hid_t native_;
    hsize_t chunk_;
    Hdf5Dataset dataset_;
    std::vector<Value> waiting_;  // not written yet
    hsize_t written_ = 0;
};

struct FieldWriter {
    FieldWriter(hid_t file, const RaggedShardWriter::Field& field) {
        if (field.most_ids == 0) {
            HETSEQ_ASSERT(!field.is_ragged);
            numbers.emplace(file, field.name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, offsets_in_chunk);
            return;
        }
        ids.emplace(file,
                    field.name,
                    field.most_ids <= most_ids_of_2_bytes ? H5T_STD_U16LE : H5T_STD_U32LE,
                    H5T_NATIVE_INT32,
                    values_in_chunk);
        if (!field.is_ragged)
            return;
        offsets.emplace(
            file, offsets_name(field.name), H5T_STD_I64LE, H5T_NATIVE_INT64, offsets_in_chunk);
        offsets->append(0);
    }

    void write() {
        if (ids)
            ids->write();
        if (numbers)
            numbers->write();
        if (offsets)
            offsets->write();
    }

    std::optional<GrowingDataset<std::int32_t>> ids;
    std::optional<GrowingDataset<double>> numbers;        // in place of ids
    std::optional<GrowingDataset<std::int64_t>> offsets;  // of a ragged field
    std::int64_t count = 0;                               // of ids
};

}  // namespace

struct RaggedShardWriter::State {
    State(std::filesystem::path path, ShardFormat format) : file{std::move(path), format} {}

    Hdf5Output file;
    std::vector<FieldWriter> fields;  // closed before the file
};

RaggedShardWriter::RaggedShardWriter(std::filesystem::path path,
                                     const std::vector<Field>& fields,
                                     ShardFormat format)
    : state_{std::make_unique<State>(std::move(path), format)} {
    state_->fields.reserve(fields.size());
    for (const Field& field : fields)
        state_->fields.emplace_back(state_->file.get(), field);
}

RaggedShardWriter::~RaggedShardWriter() = default;
RaggedShardWriter::RaggedShardWriter(RaggedShardWriter&&) noexcept = default;

void RaggedShardWriter::append(std::size_t field, std::span<const std::int32_t> row) {
    FieldWriter& written = state_->fields[field];
    HETSEQ_ASSERT(written.ids.has_value());
    for (const std::int32_t id : row)
        written.ids->append(id);
    written.count += std::ssize(row);
    if (written.offsets)
        written.offsets->append(written.count);
    else
        HETSEQ_ASSERT(row.size() == 1);
}

void RaggedShardWriter::append_number(std::size_t field, double number) {
    HETSEQ_ASSERT(state_->fields[field].numbers.has_value());
    state_->fields[field].numbers->append(number);
}

void RaggedShardWriter::attach(const std::string& name, std::string_view bytes) {
    const hsize_t length = bytes.size();
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(1, &length, nullptr))};
    const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
    HETSEQ_HDF5_TRY(H5Pset_obj_track_times(create.get(), false));
    const Hdf5Dataset dataset{HETSEQ_HDF5_TRY(H5Dcreate2(state_->file.get(),
                                                         name.c_str(),
                                                         H5T_STD_U8LE,
                                                         space.get(),
                                                         H5P_DEFAULT,
                                                         create.get(),
                                                         H5P_DEFAULT))};
    HETSEQ_HDF5_TRY(
        H5Dwrite(dataset.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()));
}

void RaggedShardWriter::attach_text(const std::string& name, const std::string& text) {
    state_->file.attach_text(name, text);
}

void RaggedShardWriter::attach_again(const std::string& name, const std::string& existing) {
    HETSEQ_HDF5_TRY(H5Lcreate_hard(state_->file.get(),
                                   existing.c_str(),
                                   state_->file.get(),
                                   name.c_str(),
                                   H5P_DEFAULT,
                                   H5P_DEFAULT));
}

std::int64_t RaggedShardWriter::finish() {
    for (FieldWriter& field : state_->fields)
        field.write();
    state_->file.flush();
    state_->fields.clear();
    return state_->file.finish();
}

void RaggedShardWriter::commit() {
    state_->file.commit();
}

}  // namespace hetseq
