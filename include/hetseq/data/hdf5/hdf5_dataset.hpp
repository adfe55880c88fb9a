#pragma once

#include <string>

#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

/// Opens dataset `name` of `file` to read. Throws BadData if there is none, and, before anything of
/// it is read, if its values lie in other files: behind an external link, in external storage, or
/// in the sources of a virtual dataset. `path` is that of `file`, for messages. `access` are
/// properties of dataset access.
Hdf5Dataset open_hdf5_dataset(hid_t file,
                              const std::string& path,
                              const std::string& name,
                              hid_t access = H5P_DEFAULT);

}  // namespace hetseq
