#include "hetseq/data/files/shard_header.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"

#include "attachment_check.hpp"
#include "shard_size.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StoredType, bytes, is_signed, kind)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OffsetsHeader, type, chunk_rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DatasetHeader, type, row_shape, chunk_rows, values, offsets)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardHeader, samples, datasets)

namespace {

constexpr std::size_t most_integer_bytes = 8;
constexpr hsize_t most_rows_of_shard = hsize_t{1} << 40;
constexpr std::size_t most_links = 10000;

constexpr const char* prepare_anew = "prepare the file anew, or name the right files";

std::string where(const std::string& path, const std::string& dataset) {
    return path + ": dataset '" + dataset + "'";
}

std::string joined(const std::vector<std::string>& names) {
    constexpr std::size_t most_named = 20;
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i)
        text += (text.empty() ? "" : ", ") + names[i];
    if (names.size() > most_named)
        text += " and " + std::to_string(names.size() - most_named) + " more";
    return text.empty() ? "none" : text;
}

std::vector<std::string> link_names(hid_t file, const std::string& path) {
    std::vector<std::string> names;
    const auto append = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
        auto& found = *static_cast<std::vector<std::string>*>(list);
        found.emplace_back(name);
        return found.size() > most_links ? 1 : 0;
    };
    HETSEQ_HDF5_TRY(H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &names));
    if (names.size() > most_links)
        throw BadData(path + " holds more than " + std::to_string(most_links) + " datasets",
                      "the fields of samples are a few",
                      prepare_anew);
    return names;
}

// Missing and surplus datasets are found by name, before any is opened.
void check_names(hid_t file, const std::string& path, const CorpusSchema& schema) {
    const std::vector<std::string> found = link_names(file, path);
    std::vector<std::string> expected;
    for (const FieldSchema& field : schema.fields) {
        expected.push_back(field.name);
        if (field.is_ragged)
            expected.push_back(offsets_name(field.name));
    }
    for (const AttachmentSchema& attachment : schema.attachments)
        if (attachment.place == AttachmentSchema::Place::dataset)
            expected.push_back(attachment.name);
    const auto has = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::string why =
        schema.kind + " needs " + joined(expected) + "; the file holds " + joined(found);
    for (const std::string& name : expected) {
        if (!has(found, name))
            throw BadData(path + ": dataset '" + name + "' is missing", why, prepare_anew);
    }
    for (const std::string& name : found) {
        if (!has(expected, name))
            throw BadData(path + ": dataset '" + name + "' is surplus", why, prepare_anew);
    }
}

std::string class_name(H5T_class_t type_class) {
    switch (type_class) {
        case H5T_INTEGER:
            return "integer";
        case H5T_FLOAT:
            return "floating point";
        case H5T_STRING:
            return "text";
        case H5T_COMPOUND:
            return "compound";
        case H5T_ENUM:
            return "enumeration";
        case H5T_VLEN:
            return "variable-length";
        default:
            return "not a number";
    }
}

[[noreturn]] void throw_wrong_type(const std::string& place,
                                   const std::string& found,
                                   const std::string& expected) {
    throw BadData(
        place + " is of the wrong type", "found " + found + ", expected " + expected, prepare_anew);
}

std::string type_text(hid_t type) {
    return class_name(H5Tget_class(type)) + " of " + std::to_string(H5Tget_size(type)) + " bytes";
}

// A damaged header may promise any length.
StoredType integer_type(hid_t type, const std::string& place) {
    if (H5Tget_class(type) != H5T_INTEGER)
        throw_wrong_type(place, type_text(type), "an integer type");
    const std::size_t bytes = H5Tget_size(type);
    if (bytes < 1 || bytes > most_integer_bytes)
        throw_wrong_type(place, "integers of " + std::to_string(bytes) + " bytes", "at most 8");
    return {static_cast<int>(bytes), H5Tget_sign(type) == H5T_SGN_2, StoredKind::integer};
}

StoredType real_type(hid_t type, const std::string& place) {
    if (H5Tget_class(type) != H5T_FLOAT || !is_ieee_float(type))
        throw_wrong_type(place, type_text(type), "IEEE floating point of 2, 4 or 8 bytes");
    return {static_cast<int>(H5Tget_size(type)), true, StoredKind::real};
}

StoredType boolean_or_integer_type(hid_t type, const std::string& place) {
    const bool is_enumeration = is_boolean(type);
    if (!is_enumeration && (H5Tget_class(type) != H5T_INTEGER || H5Tget_size(type) != 1))
        throw_wrong_type(place, type_text(type), "h5py's bool or integers of 1 byte");
    const Hdf5Type base{is_enumeration ? HETSEQ_HDF5_TRY(H5Tget_super(type)) : H5I_INVALID_HID};
    const bool is_signed = H5Tget_sign(is_enumeration ? base.get() : type) == H5T_SGN_2;
    return {1, is_signed, is_enumeration ? StoredKind::boolean : StoredKind::integer};
}

StoredType stored_type(hid_t dataset, const FieldSchema& field, const std::string& place) {
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Dget_type(dataset))};
    if (is_real(field.type))
        return real_type(type.get(), place);
    if (field.type == ElementType::boolean)
        return boolean_or_integer_type(type.get(), place);
    return integer_type(type.get(), place);
}

// A damaged header may promise any lengths; products of those let through do not overflow.
void check_size(const std::vector<hsize_t>& lengths, const std::string& place) {
    hsize_t row_values = 1;
    std::string text;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        text += (i > 0 ? " x " : "") + std::to_string(lengths[i]);
        const hsize_t most = i == 0 ? most_rows_of_shard : static_cast<hsize_t>(most_row_values);
        if (lengths[i] > most || (i > 0 && lengths[i] > 0 && row_values > most / lengths[i]))
            throw BadData(
                place + " is too large",
                "found " + text + " ..., expected at most 2^40 rows of at most 2^27 values",
                prepare_anew);
        if (i > 0)
            row_values *= std::max<hsize_t>(lengths[i], 1);
    }
}

std::vector<std::int64_t> dimensions(hid_t dataset, const std::string& place) {
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset))};
    const int rank = HETSEQ_HDF5_TRY(H5Sget_simple_extent_ndims(space.get()));
    std::vector<hsize_t> lengths(static_cast<std::size_t>(rank));
    HETSEQ_HDF5_TRY(H5Sget_simple_extent_dims(space.get(), lengths.data(), nullptr));
    check_size(lengths, place);
    return {lengths.begin(), lengths.end()};
}

void check_filters(hid_t properties, const std::string& place) {
    const int filters = HETSEQ_HDF5_TRY(H5Pget_nfilters(properties));
    for (int i = 0; i < filters; ++i) {
        unsigned flags = 0;
        std::size_t values = 0;
        char name[64] = "";
        const H5Z_filter_t filter = H5Pget_filter2(properties,
                                                   static_cast<unsigned>(i),
                                                   &flags,
                                                   &values,
                                                   nullptr,
                                                   sizeof name,
                                                   name,
                                                   nullptr);
        if (H5Zfilter_avail(filter) <= 0)
            throw BadData(place + " is compressed with a filter that this HDF5 lacks",
                          "filter " + std::to_string(filter) + " " + name,
                          "rewrite it with gzip: h5repack -f GZIP=4 IN OUT");
    }
}

// Rows of a chunk, 0 for contiguous storage.
std::int64_t chunk_rows(hid_t dataset, const std::string& place, const StoredType& type) {
    const Hdf5Properties properties{HETSEQ_HDF5_TRY(H5Dget_create_plist(dataset))};
    if (H5Pget_layout(properties.get()) != H5D_CHUNKED)
        return 0;
    check_filters(properties.get(), place);
    hsize_t lengths[H5S_MAX_RANK] = {};
    const int rank = HETSEQ_HDF5_TRY(H5Pget_chunk(properties.get(), H5S_MAX_RANK, lengths));
    check_chunk_bytes(place, {lengths, lengths + rank}, type.bytes);
    return static_cast<std::int64_t>(lengths[0]);
}

void check_dimensions(const std::vector<std::int64_t>& lengths,
                      const FieldSchema& field,
                      const std::string& place) {
    if (std::ssize(lengths) != field.rank)
        throw BadData(place + " has the wrong number of dimensions",
                      "found " + std::to_string(lengths.size()) + ", expected " +
                          std::to_string(field.rank) + ", the samples' included",
                      prepare_anew);
    const std::vector<std::int64_t> row_shape(lengths.begin() + 1, lengths.end());
    for (std::size_t i = 0; i < field.row_shape.size() && i < row_shape.size(); ++i) {
        if (field.row_shape[i] >= 0 && field.row_shape[i] != row_shape[i])
            throw BadData(place + " has rows of the wrong shape",
                          "found " + row_shape_text(row_shape) + ", expected " +
                              row_shape_text(field.row_shape),
                          prepare_anew);
    }
    if (field.max_row_length > 0 && !row_shape.empty() && row_shape[0] > field.max_row_length)
        throw BadData(place + " has rows that are too long",
                      "found " + std::to_string(row_shape[0]) + ", expected at most " +
                          std::to_string(field.max_row_length),
                      "prepare shorter sequences, or use a model that takes longer ones");
}

struct FieldRows {
    std::int64_t count = 0;
    DatasetHeader header;
    double bytes = 0;  // declared
};

FieldRows fixed_rows(hid_t file, const std::string& path, const FieldSchema& field) {
    const std::string place = where(path, field.name);
    const Hdf5Dataset dataset = open_hdf5_dataset(file, path, field.name);
    const StoredType type = stored_type(dataset.get(), field, place);
    const std::vector<std::int64_t> lengths = dimensions(dataset.get(), place);
    check_dimensions(lengths, field, place);
    return {lengths[0],
            {type, {lengths.begin() + 1, lengths.end()}, chunk_rows(dataset.get(), place, type)},
            declared_bytes(lengths, type.bytes)};
}

StoredType offsets_type(hid_t dataset, const std::string& place) {
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Dget_type(dataset))};
    if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != most_integer_bytes)
        throw_wrong_type(place, type_text(type.get()), "integers of 8 bytes");
    return integer_type(type.get(), place);
}

// The values of a ragged field are one row after the other, its offsets one more than its rows.
FieldRows ragged_rows(hid_t file, const std::string& path, const FieldSchema& field) {
    const FieldRows values = fixed_rows(file, path, field);
    const std::string name = offsets_name(field.name);
    const std::string place = where(path, name);
    const Hdf5Dataset dataset = open_hdf5_dataset(file, path, name);
    const StoredType type = offsets_type(dataset.get(), place);
    const std::vector<std::int64_t> lengths = dimensions(dataset.get(), place);
    check_dimensions(lengths, {.name = name}, place);
    if (lengths[0] == 0)
        throw BadData(place + " is empty",
                      "offsets are one more than samples, so that no sample has one",
                      prepare_anew);
    DatasetHeader header = values.header;
    header.values = values.count;
    header.offsets = {type, chunk_rows(dataset.get(), place, type)};
    return {lengths[0] - 1, header, values.bytes + declared_bytes(lengths, type.bytes)};
}

void check_same_row_shapes(const ShardHeader& header,
                           const CorpusSchema& schema,
                           const std::string& path) {
    for (std::size_t i = 0; i < schema.fields.size(); ++i) {
        for (std::size_t k = 0; k < schema.fields.size(); ++k) {
            if (schema.fields[i].same_row_shape_as != schema.fields[k].name)
                continue;
            if (header.datasets[i].row_shape != header.datasets[k].row_shape)
                throw BadData(where(path, schema.fields[i].name) + " has rows of the wrong shape",
                              "found " + row_shape_text(header.datasets[i].row_shape) +
                                  ", expected " + row_shape_text(header.datasets[k].row_shape) +
                                  " as in '" + schema.fields[k].name + "'",
                              prepare_anew);
        }
    }
}

}  // namespace

std::string row_shape_text(const std::vector<std::int64_t>& row_shape) {
    std::string text;
    for (const std::int64_t length : row_shape)
        text += (text.empty() ? "" : " x ") + (length < 0 ? "any" : std::to_string(length));
    return text.empty() ? "a number" : text;
}

ShardHeader read_shard_header(const std::string& path, const CorpusSchema& schema) {
    check_ragged_fields(schema);
    const Hdf5File file = open_hdf5(path);
    check_names(file.get(), path, schema);
    ShardHeader header;
    double declared = 0;  // [bytes]
    for (const FieldSchema& field : schema.fields) {
        const FieldRows rows = field.is_ragged ? ragged_rows(file.get(), path, field)
                                               : fixed_rows(file.get(), path, field);
        if (header.datasets.empty())
            header.samples = rows.count;
        if (rows.count != header.samples)
            throw BadData(where(path, field.name) + " has another length than the rest of the file",
                          "found " + std::to_string(rows.count) + " rows, expected " +
                              std::to_string(header.samples) + " as in '" + schema.fields[0].name +
                              "'",
                          prepare_anew);
        header.datasets.push_back(rows.header);
        declared += rows.bytes;
    }
    check_declared_bytes(path, declared);
    check_same_row_shapes(header, schema, path);
    for (const AttachmentSchema& attachment : schema.attachments)
        check_attachment(file.get(), path, attachment);
    return header;
}

std::string to_text(const std::vector<ShardHeader>& headers) {
    return json_text(nlohmann::json(headers));
}

std::vector<ShardHeader> shard_headers_from_text(const std::string& text) {
    return parse_json<nlohmann::json>(text).get<std::vector<ShardHeader>>();
}

}  // namespace hetseq
