#pragma once

#include <string>

namespace hetseq {

/// What the HDF5 library of this process is: "1.10.8, parallel, not thread-safe".
std::string hdf5_description();

}  // namespace hetseq
