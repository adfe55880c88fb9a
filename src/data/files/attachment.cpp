#include "hetseq/data/files/attachment.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/data/files/first_shard.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"

#include "attachment_check.hpp"

namespace hetseq {

namespace {

constexpr hsize_t most_attachment_bytes = hsize_t{256} << 20;
constexpr const char* name_prepared_files = "name files that hetseq prepared, or prepare them anew";

std::string place(const std::string& path, const std::string& name) {
    return path + ": dataset '" + name + "'";
}

// A damaged header may promise any length.
std::size_t length_of(hid_t dataset, const std::string& where) {
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset))};
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Dget_type(dataset))};
    const bool holds_bytes =
        H5Tget_class(type.get()) == H5T_INTEGER && H5Tget_size(type.get()) == 1;
    hsize_t length = 0;
    if (!holds_bytes || H5Sget_simple_extent_ndims(space.get()) != 1 ||
        H5Sget_simple_extent_dims(space.get(), &length, nullptr) < 0 ||
        length > most_attachment_bytes)
        throw BadData(where + " is not a sequence of bytes",
                      "expected integers of 1 byte in one dimension, at most 256 MiB",
                      name_prepared_files);
    return static_cast<std::size_t>(length);
}

std::string read_bytes(hid_t file, const std::string& path, const std::string& name) {
    const std::string where = place(path, name);
    if (H5Lexists(file, name.c_str(), H5P_DEFAULT) <= 0)
        throw BadData(
            where + " cannot be opened", "the file does not hold it", name_prepared_files);
    const Hdf5Dataset dataset = open_hdf5_dataset(file, path, name);
    std::string bytes(length_of(dataset.get(), where), '\0');
    if (H5Dread(dataset.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
        throw BadData(where + " cannot be read", hdf5_error_message(), name_prepared_files);
    return bytes;
}

std::string attribute_place(const std::string& path, const std::string& name) {
    return path + ": attribute '" + name + "'";
}

std::optional<std::string> read_text(hid_t file, const std::string& path, const std::string& name) {
    if (HETSEQ_HDF5_TRY(H5Aexists(file, name.c_str())) == 0)
        return std::nullopt;
    const std::string where = attribute_place(path, name);
    const Hdf5Attribute attribute{H5Aopen(file, name.c_str(), H5P_DEFAULT)};
    if (!attribute)
        throw BadData(where + " cannot be opened", hdf5_error_message(), name_prepared_files);
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Aget_type(attribute.get()))};
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Aget_space(attribute.get()))};
    const bool is_text =
        H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0;
    const std::size_t length = H5Tget_size(type.get());
    if (!is_text || H5Sget_simple_extent_npoints(space.get()) != 1 ||
        length > most_attachment_bytes)
        throw BadData(where + " is not a text",
                      "expected one text of a fixed length, at most 256 MiB",
                      name_prepared_files);
    std::string text(length, '\0');
    if (H5Aread(attribute.get(), type.get(), text.data()) < 0)
        throw BadData(where + " cannot be read", hdf5_error_message(), name_prepared_files);
    return text;
}

}  // namespace

std::string read_attachment(const std::string& spec, const std::string& name) {
    const std::string path = first_shard(spec);
    return read_bytes(open_hdf5(path).get(), path, name);
}

std::optional<std::string> read_attached_text(const std::string& spec, const std::string& name) {
    const std::string path = first_shard(spec);
    const Hdf5File file = try_open_hdf5(path);
    return file ? read_text(file.get(), path, name) : std::nullopt;
}

std::string read_required_text(const std::string& spec, const std::string& name) {
    const std::string path = first_shard(spec);
    const std::optional<std::string> text = read_text(open_hdf5(path).get(), path, name);
    if (!text)
        throw BadData(attribute_place(path, name) + " is missing", "", name_prepared_files);
    return *text;
}

void check_attachment(hid_t file, const std::string& path, const AttachmentSchema& schema) {
    const bool is_text = schema.place == AttachmentSchema::Place::attribute;
    const std::optional<std::string> bytes =
        is_text ? read_text(file, path, schema.name) : read_bytes(file, path, schema.name);
    if (!bytes)
        return;
    const std::uint64_t found = xxh64_of(*bytes);
    if (found != schema.xxh64)
        throw BadData(
            (is_text ? attribute_place : place)(path, schema.name) + " is not " + schema.meaning,
            "found checksum " + checksum_text(found) + ", expected " + checksum_text(schema.xxh64),
            "name files that were prepared together");
}

}  // namespace hetseq
