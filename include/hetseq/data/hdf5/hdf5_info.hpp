#pragma once

#include <string>

namespace hetseq {

/// The HDF5 library of this process: "1.10.8, parallel, not thread-safe".
std::string hdf5_description();

}  // namespace hetseq
