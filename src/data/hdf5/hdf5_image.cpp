#include "hetseq/data/hdf5/hdf5_image.hpp"

namespace hetseq {

std::vector<std::byte> make_hdf5_image(const std::function<void(hid_t file)>& fill) {
    initialize_hdf5();
    const Hdf5Properties access{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))};
    constexpr std::size_t increment = std::size_t{1} << 20;
    HETSEQ_HDF5_TRY(H5Pset_fapl_core(access.get(), increment, /*backing_store=*/0));
    const Hdf5File file{
        HETSEQ_HDF5_TRY(H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()))};
    fill(file.get());
    HETSEQ_HDF5_TRY(H5Fflush(file.get(), H5F_SCOPE_GLOBAL));
    const auto size = HETSEQ_HDF5_TRY(H5Fget_file_image(file.get(), nullptr, 0));
    std::vector<std::byte> image(static_cast<std::size_t>(size));
    HETSEQ_HDF5_TRY(H5Fget_file_image(file.get(), image.data(), image.size()));
    return image;
}

void write_hdf5_dataset(hid_t file,
                        const std::string& name,
                        hid_t type,
                        const std::vector<hsize_t>& shape,
                        const void* values) {
    const auto rank = static_cast<int>(shape.size());
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(rank, shape.data(), nullptr))};
    const Hdf5Dataset dataset{HETSEQ_HDF5_TRY(
        H5Dcreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))};
    HETSEQ_HDF5_TRY(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
}

}  // namespace hetseq
