#include "hetseq/data/files/prediction_file.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/hdf5_output.hpp"
#include "hetseq/data/files/shard_header.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

namespace {

constexpr const char* mend_model = "mend the model's predictions";
constexpr std::int64_t chunk_bytes = std::int64_t{256} << 10;

/// What a dataset is.
struct Kind {
    std::string name;
    at::ScalarType type = at::kFloat;
    bool is_ragged = false;
    std::vector<std::int64_t> row_shape;  // of a value, where rows have unequal lengths

    friend bool operator==(const Kind&, const Kind&) = default;

    std::int64_t row_elements() const {
        std::int64_t elements = 1;
        for (const std::int64_t length : row_shape)
            elements *= length;
        return elements;
    }
    std::int64_t row_bytes() const {
        return row_elements() * static_cast<std::int64_t>(c10::elementSize(type));
    }
};

std::string type_name(at::ScalarType type) {
    switch (type) {
        case at::kDouble:
            return "float64";
        case at::kFloat:
            return "float32";
        case at::kHalf:
            return "float16";
        case at::kLong:
            return "int64";
        case at::kInt:
            return "int32";
        case at::kShort:
            return "int16";
        case at::kChar:
            return "int8";
        case at::kByte:
            return "uint8";
        case at::kBool:
            return "bool";
        default:
            return "";
    }
}

std::string text_of(const Kind& kind) {
    return type_name(kind.type) + ", " +
           (kind.is_ragged ? "rows of unequal length of " : "rows of ") +
           row_shape_text(kind.row_shape);
}

Hdf5Type hdf5_type(at::ScalarType type) {
    if (type == at::kHalf)
        return half_type();
    if (type == at::kBool)
        return boolean_type();
    const std::pair<at::ScalarType, hid_t> types[] = {{at::kDouble, H5T_IEEE_F64LE},
                                                      {at::kFloat, H5T_IEEE_F32LE},
                                                      {at::kLong, H5T_STD_I64LE},
                                                      {at::kInt, H5T_STD_I32LE},
                                                      {at::kShort, H5T_STD_I16LE},
                                                      {at::kChar, H5T_STD_I8LE},
                                                      {at::kByte, H5T_STD_U8LE}};
    for (const auto& [known, hdf5] : types)
        if (known == type)
            return Hdf5Type{HETSEQ_HDF5_TRY(H5Tcopy(hdf5))};
    throw InternalError(std::string("there is no HDF5 type for ") + at::toString(type));
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw BadConfig("the model's prediction '" + name + "' cannot be written", why, mend_model);
}

void check_name(const std::string& name) {
    const std::string offsets = offsets_name("");
    const bool is_bad = name.empty() || name == "." || name.find('/') != std::string::npos ||
                        (name.size() >= offsets.size() &&
                         name.compare(name.size() - offsets.size(), offsets.size(), offsets) == 0);
    if (is_bad)
        refuse(name, "a name is a word without '/' that does not end in " + offsets);
}

// bfloat16 has no HDF5 type of its own.
at::Tensor storable(const at::Tensor& values) {
    const at::Tensor on_host = values.detach().to(at::kCPU);
    return (on_host.scalar_type() == at::kBFloat16 ? on_host.to(at::kFloat) : on_host).contiguous();
}

/// A prediction that was checked.
struct Rows {
    Kind kind;
    at::Tensor values;   // contiguous
    at::Tensor lengths;  // (n) int64; undefined: rows of one shape
};

Rows checked_rows(const Prediction& prediction, std::int64_t count) {
    const std::string& name = prediction.name;
    check_name(name);
    if (!prediction.values.defined() || prediction.values.dim() == 0)
        refuse(name, "it has no rows: a tensor with a row for each sample is needed");
    Rows rows;
    rows.kind.name = name;
    rows.values = storable(prediction.values);
    rows.kind.type = rows.values.scalar_type();
    rows.kind.is_ragged = prediction.row_lengths.defined();
    rows.kind.row_shape = rows.values.sizes().slice(1).vec();
    if (type_name(rows.kind.type).empty())
        refuse(name, std::string("its type is ") + at::toString(rows.kind.type));
    std::int64_t expected = count;
    if (rows.kind.is_ragged) {
        rows.lengths = prediction.row_lengths.detach().to(at::kCPU, at::kLong).contiguous();
        if (rows.lengths.dim() != 1 || rows.lengths.numel() != count)
            refuse(name,
                   "it says the lengths of " + std::to_string(rows.lengths.numel()) +
                       " rows for a batch of " + std::to_string(count) + " samples");
        if (count > 0 && rows.lengths.min().item<std::int64_t>() < 0)
            refuse(name, "a row's length is negative");
        expected = rows.lengths.sum().item<std::int64_t>();
    }
    if (rows.values.size(0) != expected)
        refuse(name,
               "it has " + std::to_string(rows.values.size(0)) +
                   (rows.kind.is_ragged ? " values, and its rows have " : " rows for a batch of ") +
                   std::to_string(expected) + (rows.kind.is_ragged ? "" : " samples"));
    return rows;
}

Hdf5Dataset make_dataset(
    hid_t file, const std::string& name, const Kind& kind, std::int64_t rows, bool grows) {
    std::vector<hsize_t> extent{static_cast<hsize_t>(rows)};
    for (const std::int64_t length : kind.row_shape)
        extent.push_back(static_cast<hsize_t>(length));
    std::vector<hsize_t> most = extent;
    const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
    HETSEQ_HDF5_TRY(H5Pset_obj_track_times(create.get(), false));  // the same bytes tomorrow
    HETSEQ_HDF5_TRY(H5Pset_fill_time(create.get(), H5D_FILL_TIME_NEVER));
    // Where a dataset lies must not depend on which one is written first.
    HETSEQ_HDF5_TRY(
        H5Pset_alloc_time(create.get(), grows ? H5D_ALLOC_TIME_INCR : H5D_ALLOC_TIME_EARLY));
    if (grows) {
        most.front() = H5S_UNLIMITED;
        std::vector<hsize_t> chunk = extent;
        for (hsize_t& length : chunk)
            length = std::max<hsize_t>(length, 1);
        chunk.front() = static_cast<hsize_t>(
            std::max<std::int64_t>(chunk_bytes / std::max<std::int64_t>(kind.row_bytes(), 1), 1));
        HETSEQ_HDF5_TRY(H5Pset_chunk(create.get(), static_cast<int>(chunk.size()), chunk.data()));
    }
    const Hdf5Space space{HETSEQ_HDF5_TRY(
        H5Screate_simple(static_cast<int>(extent.size()), extent.data(), most.data()))};
    return Hdf5Dataset{HETSEQ_HDF5_TRY(H5Dcreate2(file,
                                                  name.c_str(),
                                                  hdf5_type(kind.type).get(),
                                                  space.get(),
                                                  H5P_DEFAULT,
                                                  create.get(),
                                                  H5P_DEFAULT))};
}

void write_rows(
    hid_t dataset, const Kind& kind, std::int64_t begin, std::int64_t rows, const void* values) {
    if (rows * kind.row_elements() == 0)
        return;
    std::vector<hsize_t> start{static_cast<hsize_t>(begin)}, count{static_cast<hsize_t>(rows)};
    for (const std::int64_t length : kind.row_shape) {
        start.push_back(0);
        count.push_back(static_cast<hsize_t>(length));
    }
    const Hdf5Space file{HETSEQ_HDF5_TRY(H5Dget_space(dataset))};
    const Hdf5Space memory{
        HETSEQ_HDF5_TRY(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr))};
    HETSEQ_HDF5_TRY(H5Sselect_hyperslab(
        file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
    HETSEQ_HDF5_TRY(H5Dwrite(
        dataset, hdf5_type(kind.type).get(), memory.get(), file.get(), H5P_DEFAULT, values));
}

/// One dataset.
class Column {
public:
    Column(hid_t file, Kind kind, std::int64_t samples)
        : kind_{std::move(kind)},
          values_{make_dataset(
              file, kind_.name, kind_, kind_.is_ragged ? 0 : samples, kind_.is_ragged)} {
        if (!kind_.is_ragged)
            return;
        offsets_ = make_dataset(file, offsets_name(kind_.name), offsets_kind(), samples + 1, false);
        const std::int64_t first = 0;
        write_rows(offsets_.get(), offsets_kind(), 0, 1, &first);
    }

    const Kind& kind() const noexcept { return kind_; }

    /// The rows of the next samples, where rows have unequal lengths; otherwise of any.
    void write(std::int64_t begin, std::int64_t count, const Rows& rows) {
        const void* values = rows.values.const_data_ptr();
        if (!kind_.is_ragged) {
            write_rows(values_.get(), kind_, begin, count, values);
            return;
        }
        const std::int64_t length = rows.values.size(0);
        std::vector<hsize_t> extent{static_cast<hsize_t>(next_value_ + length)};
        for (const std::int64_t inner : kind_.row_shape)
            extent.push_back(static_cast<hsize_t>(inner));
        HETSEQ_HDF5_TRY(H5Dset_extent(values_.get(), extent.data()));
        write_rows(values_.get(), kind_, next_value_, length, values);
        const at::Tensor ends = rows.lengths.cumsum(0) + next_value_;
        write_rows(offsets_.get(), offsets_kind(), begin + 1, count, ends.const_data_ptr());
        next_value_ += length;
    }

private:
    static Kind offsets_kind() { return {"", at::kLong, false, {}}; }

    Kind kind_;
    Hdf5Dataset values_, offsets_;
    std::int64_t next_value_ = 0;  // of rows of unequal length
};

std::int64_t bytes_of(const std::vector<Rows>& all) {
    std::int64_t bytes = 0;
    for (const Rows& rows : all)
        bytes += rows.values.defined() ? static_cast<std::int64_t>(rows.values.nbytes()) : 0;
    return bytes;
}

Hdf5Type text_type() {
    Hdf5Type type{HETSEQ_HDF5_TRY(H5Tcopy(H5T_C_S1))};
    HETSEQ_HDF5_TRY(H5Tset_size(type.get(), H5T_VARIABLE));
    HETSEQ_HDF5_TRY(H5Tset_cset(type.get(), H5T_CSET_UTF8));
    return type;
}

using Hdf5Attribute = UniqueHandle<detail::Hdf5Traits<H5Aclose>>;

void write_attribute(hid_t file, const std::string& name, hid_t type, const void* value) {
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate(H5S_SCALAR))};
    const Hdf5Attribute attribute{HETSEQ_HDF5_TRY(
        H5Acreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT))};
    HETSEQ_HDF5_TRY(H5Awrite(attribute.get(), type, value));
}

// HDF5's errors do not name the file.
template <class Write>
auto with_path(const std::filesystem::path& path, Write&& write) {
    try {
        return write();
    } catch (const IoError& error) {
        throw IoError(
            "cannot write " + path.string(), error.what(), "free space, or choose another folder");
    }
}

}  // namespace

struct PredictionFile::State {
    State(std::filesystem::path path, std::int64_t all) : file{std::move(path)}, samples{all} {}
    void begin(const std::vector<Rows>& all);
    void write_waiting();

    Hdf5Output file;
    std::int64_t samples = 0;
    std::vector<Column> columns{};  // closed before the file
    std::int64_t written = 0;
    /// Rows of unequal length that wait for those of earlier samples.
    struct Waiting {
        std::int64_t count = 0;  // samples
        std::vector<Rows> rows;  // by column; rows of one shape are written already
    };
    std::map<std::int64_t, Waiting> waiting{};  // by their first sample
    std::int64_t waiting_bytes = 0;
    std::int64_t next_sample = 0;
};

// All columns of a piece before the next piece, so that the file does not depend on the order in
// which pieces come.
void PredictionFile::State::write_waiting() {
    for (auto next = waiting.find(next_sample); next != waiting.end();
         next = waiting.find(next_sample)) {
        const Waiting& piece = next->second;
        for (std::size_t i = 0; i < columns.size(); ++i)
            if (columns[i].kind().is_ragged)
                columns[i].write(next_sample, piece.count, piece.rows[i]);
        waiting_bytes -= bytes_of(piece.rows);
        next_sample += piece.count;
        waiting.erase(next);
    }
}

// Lays out the datasets when the first rows are there.
void PredictionFile::State::begin(const std::vector<Rows>& all) {
    if (all.empty())
        throw BadConfig("the model made no prediction", "it returned an empty list", mend_model);
    std::int64_t bytes = 0;
    std::set<std::string> names;
    for (const Rows& rows : all) {
        if (!names.insert(rows.kind.name).second)
            refuse(rows.kind.name, "two have this name");
        bytes += rows.kind.is_ragged ? 0 : samples * rows.kind.row_bytes();
    }
    const auto folder = file.path().has_parent_path() ? file.path().parent_path() : ".";
    std::error_code unknown;
    const auto space = std::filesystem::space(folder, unknown);
    if (!unknown && static_cast<std::uint64_t>(bytes) > space.available)
        throw IoError("the predictions do not fit on the disk of " + file.path().string(),
                      "they take " + std::to_string(bytes >> 20) + " MiB, and " +
                          std::to_string(space.available >> 20) + " MiB are free",
                      "free space, or choose another folder");
    for (const Rows& rows : all)
        columns.emplace_back(file.get(), rows.kind, samples);
}

PredictionFile::PredictionFile(std::filesystem::path path, std::int64_t samples)
    : state_{std::make_unique<State>(std::move(path), samples)} {}

PredictionFile::~PredictionFile() = default;

void PredictionFile::set_attribute(const std::string& name, const std::string& value) {
    const char* text = value.c_str();
    write_attribute(state_->file.get(), name, text_type().get(), &text);
}

void PredictionFile::set_attribute(const std::string& name, std::int64_t value) {
    write_attribute(state_->file.get(), name, H5T_STD_I64LE, &value);
}

void PredictionFile::write(std::int64_t begin,
                           std::int64_t count,
                           const std::vector<Prediction>& predictions) {
    HETSEQ_ASSERT(begin >= 0 && count > 0 && begin + count <= state_->samples);
    std::vector<Rows> all;
    for (const Prediction& prediction : predictions)
        all.push_back(checked_rows(prediction, count));
    std::vector<Column>& columns = state_->columns;
    if (columns.empty())
        state_->begin(all);
    if (all.size() != columns.size())
        throw BadConfig("the model's predictions differ from batch to batch",
                        std::to_string(columns.size()) + " in the first, " +
                            std::to_string(all.size()) + " in another",
                        mend_model);
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].kind != columns[i].kind())
            throw BadConfig(
                "the model's prediction '" + all[i].kind.name + "' differs from batch to batch",
                "in the first '" + columns[i].kind().name + "', " + text_of(columns[i].kind()) +
                    "; in another " + text_of(all[i].kind),
                "give rows of one shape, or the lengths of rows that have unequal ones");
    with_path(state_->file.path(), [&] {
        for (std::size_t i = 0; i < all.size(); ++i)
            if (!columns[i].kind().is_ragged) {
                columns[i].write(begin, count, all[i]);
                all[i].values.reset();
            }
        state_->waiting_bytes += bytes_of(all);
        state_->waiting[begin] = {count, std::move(all)};
        state_->write_waiting();
    });
    state_->written += count;
}

std::int64_t PredictionFile::samples() const noexcept {
    return state_->written;
}

std::int64_t PredictionFile::waiting_bytes() const noexcept {
    return state_->waiting_bytes;
}

std::vector<PredictionFile::Dataset> PredictionFile::datasets() const {
    std::vector<Dataset> datasets;
    for (const Column& column : state_->columns) {
        const Kind& kind = column.kind();
        Dataset& dataset = datasets.emplace_back(Dataset{kind.name, type_name(kind.type), {}});
        if (kind.is_ragged)
            dataset.row_shape.push_back(-1);
        dataset.row_shape.insert(
            dataset.row_shape.end(), kind.row_shape.begin(), kind.row_shape.end());
    }
    return datasets;
}

std::int64_t PredictionFile::commit() {
    HETSEQ_ASSERT(state_->written == state_->samples);
    return with_path(state_->file.path(), [&] {
        state_->file.flush();
        state_->columns.clear();
        const std::int64_t bytes = state_->file.finish();
        state_->file.commit();
        return bytes;
    });
}

}  // namespace hetseq
