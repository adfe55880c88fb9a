#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq::test {

inline Hdf5File open_file(const std::string& path) {
    initialize_hdf5();
    const Hdf5Properties access{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))};
    HETSEQ_HDF5_TRY(H5Pset_file_locking(access.get(), 0, 1));  // as hetseq opens it
    return Hdf5File{HETSEQ_HDF5_TRY(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()))};
}

/// All values of a dataset of one dimension; `native` is HDF5's type of T.
template <class T>
std::vector<T> read_values(const std::string& path, const std::string& name, hid_t native) {
    const Hdf5File file = open_file(path);
    const Hdf5Dataset dataset{HETSEQ_HDF5_TRY(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT))};
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset.get()))};
    std::vector<T> values(
        static_cast<std::size_t>(HETSEQ_HDF5_TRY(H5Sget_simple_extent_npoints(space.get()))));
    HETSEQ_HDF5_TRY(H5Dread(dataset.get(), native, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    return values;
}

inline std::vector<std::int64_t> read_dataset(const std::string& path, const std::string& name) {
    return read_values<std::int64_t>(path, name, H5T_NATIVE_INT64);
}

inline std::vector<double> read_numbers(const std::string& path, const std::string& name) {
    return read_values<double>(path, name, H5T_NATIVE_DOUBLE);
}

/// Row after row of a ragged field.
inline std::vector<std::vector<std::int32_t>> read_rows(const std::string& path,
                                                        const std::string& field) {
    const std::vector<std::int64_t> values = read_dataset(path, field);
    const std::vector<std::int64_t> offsets = read_dataset(path, field + "_offsets");
    std::vector<std::vector<std::int32_t>> rows;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
        rows.emplace_back(values.begin() + offsets[i], values.begin() + offsets[i + 1]);
    return rows;
}

}  // namespace hetseq::test
