#include "hetseq/data/files/fixed_shard_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/hdf5_output.hpp"
#include "hetseq/data/hdf5/chunk_shape.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

namespace {

std::vector<hsize_t> lengths(const std::vector<std::int64_t>& shape) {
    return {shape.begin(), shape.end()};
}

// A dataset that is written in bands of as many rows as a chunk has.
class BandedDataset {
public:
    BandedDataset(hid_t file, std::int64_t rows, const FixedShardWriter::Field& field)
        : row_length_{std::max<std::int64_t>(field.row_length, 1)},
          bytes_{field.bytes},
          rows_{rows} {
        std::vector<std::int64_t> shape{rows};
        if (field.row_length > 0)
            shape.push_back(field.row_length);
        const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
        HETSEQ_HDF5_TRY(H5Pset_obj_track_times(create.get(), false));  // the same bytes tomorrow
        if (rows > 0) {
            const std::vector<std::int64_t> chunk = chunk_shape(shape, field.bytes);
            HETSEQ_HDF5_TRY(
                H5Pset_chunk(create.get(), static_cast<int>(chunk.size()), lengths(chunk).data()));
            HETSEQ_HDF5_TRY(H5Pset_deflate(create.get(), shard_gzip_level));
            rows_of_band_ = chunk.front();
        }
        const Hdf5Space space{HETSEQ_HDF5_TRY(
            H5Screate_simple(static_cast<int>(shape.size()), lengths(shape).data(), nullptr))};
        dataset_ =
            Hdf5Dataset{HETSEQ_HDF5_TRY(H5Dcreate2(file,
                                                   field.name.c_str(),
                                                   bytes_ == 1 ? H5T_STD_I8LE : H5T_STD_I32LE,
                                                   space.get(),
                                                   H5P_DEFAULT,
                                                   create.get(),
                                                   H5P_DEFAULT))};
        dimensions_ = shape.size();
        band_.reserve(static_cast<std::size_t>(rows_of_band_ * row_length_ * bytes_));
    }

    void append(std::span<const std::int32_t> row) {
        HETSEQ_ASSERT(std::ssize(row) <= row_length_ && written_ + waiting_ < rows_);
        const std::size_t begin = band_.size();
        band_.resize(begin + static_cast<std::size_t>(row_length_ * bytes_));
        if (bytes_ == 1)
            std::transform(row.begin(),
                           row.end(),
                           band_.begin() + static_cast<std::ptrdiff_t>(begin),
                           [](std::int32_t value) { return static_cast<std::byte>(value); });
        else
            std::memcpy(band_.data() + begin, row.data(), row.size_bytes());
        if (++waiting_ == rows_of_band_ || written_ + waiting_ == rows_)
            write();
    }

    bool is_complete() const { return written_ == rows_; }

private:
    void write() {
        const hsize_t first[]{static_cast<hsize_t>(written_), 0};
        const hsize_t count[]{static_cast<hsize_t>(waiting_), static_cast<hsize_t>(row_length_)};
        const auto dimensions = static_cast<int>(dimensions_);
        const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset_.get()))};
        const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(dimensions, count, nullptr))};
        HETSEQ_HDF5_TRY(
            H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first, nullptr, count, nullptr));
        HETSEQ_HDF5_TRY(H5Dwrite(dataset_.get(),
                                 bytes_ == 1 ? H5T_NATIVE_INT8 : H5T_NATIVE_INT32,
                                 memory.get(),
                                 space.get(),
                                 H5P_DEFAULT,
                                 band_.data()));
        written_ += waiting_;
        waiting_ = 0;
        band_.clear();
    }

    std::int64_t row_length_;
    int bytes_;  // of a value
    std::int64_t rows_;
    std::int64_t rows_of_band_ = 1;
    std::size_t dimensions_ = 0;
    Hdf5Dataset dataset_;
    std::vector<std::byte> band_;  // rows not written yet
    std::int64_t waiting_ = 0;     // these
    std::int64_t written_ = 0;     // rows
};

}  // namespace

struct FixedShardWriter::State {
    explicit State(std::filesystem::path path)
        : file{std::move(path), ShardFormat::large_attributes} {}

    Hdf5Output file;
    std::vector<BandedDataset> fields;
};

FixedShardWriter::FixedShardWriter(std::filesystem::path path,
                                   std::int64_t rows,
                                   const std::vector<Field>& fields)
    : state_{std::make_unique<State>(std::move(path))} {
    state_->fields.reserve(fields.size());
    for (const Field& field : fields)
        state_->fields.emplace_back(state_->file.get(), rows, field);
}

FixedShardWriter::~FixedShardWriter() = default;
FixedShardWriter::FixedShardWriter(FixedShardWriter&&) noexcept = default;

void FixedShardWriter::append(std::size_t field, std::span<const std::int32_t> row) {
    state_->fields[field].append(row);
}

void FixedShardWriter::attach_text(const std::string& name, const std::string& text) {
    state_->file.attach_text(name, text);
}

std::int64_t FixedShardWriter::finish() {
    for (const BandedDataset& field : state_->fields)
        HETSEQ_ASSERT(field.is_complete());
    state_->file.flush();
    state_->fields.clear();
    return state_->file.finish();
}

void FixedShardWriter::commit() {
    state_->file.commit();
}

}  // namespace hetseq
