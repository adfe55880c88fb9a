#include "hetseq/data/hdf5/hdf5_types.hpp"

#include <cstdint>

#include "hetseq/data/hdf5/stored_type.hpp"

namespace hetseq {

namespace {

bool may_clip(const StoredType& stored, ElementType type) {
    const auto bytes = static_cast<int>(size_of(type));
    if (is_real(type))
        return stored.bytes > bytes;
    const bool is_signed = type != ElementType::uint8;
    if (stored.is_signed == is_signed)
        return stored.bytes > bytes;
    return stored.is_signed || stored.bytes >= bytes;
}

hid_t native_type(ElementType type) {
    switch (type) {
        case ElementType::uint8:
        case ElementType::boolean:
            return H5T_NATIVE_UINT8;
        case ElementType::int8:
            return H5T_NATIVE_INT8;
        case ElementType::int32:
            return H5T_NATIVE_INT32;
        case ElementType::float32:
            return H5T_NATIVE_FLOAT;
        case ElementType::float64:
            return H5T_NATIVE_DOUBLE;
        case ElementType::int64:
        case ElementType::float16:  // see `memory_type`
            break;
    }
    return H5T_NATIVE_INT64;
}

bool is_member(hid_t type, const char* name, std::uint8_t value) {
    std::uint8_t found = 0xff;
    return H5Tget_member_index(type, name) >= 0 && H5Tenum_valueof(type, name, &found) >= 0 &&
           found == value;
}

}  // namespace

Hdf5Type half_type() {
    Hdf5Type type{HETSEQ_HDF5_TRY(H5Tcopy(H5T_NATIVE_FLOAT))};
    HETSEQ_HDF5_TRY(H5Tset_fields(type.get(), 15, 10, 5, 0, 10));
    HETSEQ_HDF5_TRY(H5Tset_size(type.get(), 2));
    HETSEQ_HDF5_TRY(H5Tset_ebias(type.get(), 15));
    return type;
}

Hdf5Type boolean_type(bool is_signed) {
    Hdf5Type type{HETSEQ_HDF5_TRY(H5Tenum_create(is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8))};
    const std::uint8_t values[] = {0, 1};
    HETSEQ_HDF5_TRY(H5Tenum_insert(type.get(), "FALSE", &values[0]));
    HETSEQ_HDF5_TRY(H5Tenum_insert(type.get(), "TRUE", &values[1]));
    return type;
}

bool is_ieee_float(hid_t type) {
    const Hdf5Type half = half_type();
    const Hdf5Type big_endian_half{HETSEQ_HDF5_TRY(H5Tcopy(half.get()))};
    HETSEQ_HDF5_TRY(H5Tset_order(big_endian_half.get(), H5T_ORDER_BE));
    for (const hid_t known : {half.get(),
                              big_endian_half.get(),
                              H5T_IEEE_F32LE,
                              H5T_IEEE_F32BE,
                              H5T_IEEE_F64LE,
                              H5T_IEEE_F64BE}) {
        if (H5Tequal(type, known) > 0)
            return true;
    }
    return false;
}

bool is_boolean(hid_t type) {
    return H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
           is_member(type, "FALSE", 0) && is_member(type, "TRUE", 1);
}

ElementType checked_type(const StoredType& stored, ElementType type) {
    if (type == ElementType::boolean)
        return stored.is_signed ? ElementType::int8 : ElementType::uint8;
    if (!may_clip(stored, type))
        return type;
    return is_real(type) ? ElementType::float64 : ElementType::int64;
}

Hdf5Type memory_type(const StoredType& stored, ElementType checked) {
    if (stored.kind == StoredKind::boolean)
        return boolean_type(stored.is_signed);
    if (checked == ElementType::float16)
        return half_type();
    const hid_t native = checked == ElementType::int64 && !stored.is_signed ? H5T_NATIVE_UINT64
                                                                            : native_type(checked);
    return Hdf5Type{HETSEQ_HDF5_TRY(H5Tcopy(native))};
}

}  // namespace hetseq
