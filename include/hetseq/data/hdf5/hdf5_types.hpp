#pragma once

#include "hetseq/data/element_type.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

struct StoredType;

/// IEEE binary16 in this machine's byte order; HDF5 has no name for it.
Hdf5Type half_type();
/// The enumeration of FALSE and TRUE over an 8-bit integer, as h5py writes NumPy's bool.
Hdf5Type boolean_type(bool is_signed = true);

/// True if `type` is an IEEE binary16, binary32 or binary64 of any byte order.
bool is_ieee_float(hid_t type);
/// True if `type` is an enumeration of FALSE and TRUE over an 8-bit integer.
bool is_boolean(hid_t type);

/// The type in which values come from HDF5 and are checked. It is `type` itself, or a wider one if
/// a stored value may not fit `type`: HDF5 would clip it silently.
ElementType checked_type(const StoredType& stored, ElementType type);
/// HDF5's type for values of `checked` in memory. Integers of 8 bytes are signed if the stored ones
/// are.
Hdf5Type memory_type(const StoredType& stored, ElementType checked);

}  // namespace hetseq
