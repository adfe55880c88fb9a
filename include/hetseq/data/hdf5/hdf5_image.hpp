#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

/// The bytes of an HDF5 file that `fill` writes, made in memory.
std::vector<std::byte> make_hdf5_image(const std::function<void(hid_t file)>& fill);

/// Writes `values` (row-major, of the native type `type`) as a contiguous dataset.
void write_hdf5_dataset(hid_t file,
                        const std::string& name,
                        hid_t type,
                        const std::vector<hsize_t>& shape,
                        const void* values);

}  // namespace hetseq
