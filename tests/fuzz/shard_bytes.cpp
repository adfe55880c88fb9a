// Files that may be no HDF5. An input that begins with 'r' is a file but for that; any other is a
// list of changes of a valid shard: two bytes of place, one of value each.
#include "hetseq/data/hdf5/hdf5_image.hpp"

#include "fuzz/folder.hpp"
#include "fuzz/shard_reading.hpp"

using namespace hetseq;

namespace {

std::string valid_shard() {
    const auto image = make_hdf5_image([](hid_t file) {
        for (const FieldSchema& field : fuzz::shard_schema().fields) {
            // Rows of two values where they may be unequal.
            std::vector<hsize_t> shape{field.is_ragged ? hsize_t{18} : 9};
            const std::int64_t offsets[] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18};
            if (field.is_ragged)
                write_hdf5_dataset(file, offsets_name(field.name), H5T_NATIVE_INT64, {10}, offsets);
            for (const std::int64_t length : field.row_shape)
                shape.push_back(length < 0 ? 4 : static_cast<hsize_t>(length));
            const std::vector<std::uint8_t> zeros(9 * 2 * 3 * sizeof(double));
            const hid_t type = is_real(field.type) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_UINT8;
            write_hdf5_dataset(file, field.name, type, shape, zeros.data());
        }
    });
    return {reinterpret_cast<const char*>(image.data()), image.size()};
}

std::string file_of(std::string_view input) {
    static const std::string valid = valid_shard();
    if (input.substr(0, 1) == "r")
        return std::string(input.substr(1));
    std::string file = valid;
    for (std::size_t i = 0; i + 3 <= input.size(); i += 3) {
        const std::size_t place = static_cast<unsigned char>(input[i]) * std::size_t{256} +
                                  static_cast<unsigned char>(input[i + 1]);
        file[place % file.size()] = input[i + 2];
    }
    return file;
}

}  // namespace

// A file that HDF5 cannot open costs it some memory.
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    initialize_hdf5();
    static const fuzz::Folder folder;  // HDF5 opens only what has a real path
    folder.write("shard.h5", file_of(fuzz::text_of(data, size)));
    fuzz::parsed([&] { return fuzz::read_shard(folder / "shard.h5").header.samples; });
    return 0;
}
