#include "fuzz/written_shard.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "hetseq/data/hdf5/hdf5_image.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"

#include "fuzz/shard_reading.hpp"

namespace hetseq::fuzz {

namespace {

constexpr std::uint64_t most_written = 512;  // elements of a dataset

// An input that has come to its end gives zeros: they choose what a good shard has.
bool rarely(FuzzedDataProvider& input) {
    return input.ConsumeIntegralInRange(0, 31) == 31;
}

struct IntegerType {
    Hdf5Type type;
    bool is_signed = true;
    int bits = 64;
};

// Any size, order, sign and padding.
IntegerType integer_type(FuzzedDataProvider& input) {
    IntegerType result;
    result.is_signed = input.ConsumeBool();
    result.type =
        Hdf5Type{HETSEQ_HDF5_TRY(H5Tcopy(result.is_signed ? H5T_STD_I64LE : H5T_STD_U64LE))};
    const hid_t type = result.type.get();
    const auto bytes = input.PickValueInArray<std::size_t>({4, 1, 2, 8, 3, 5, 16});
    HETSEQ_HDF5_TRY(H5Tset_precision(type, std::min<std::size_t>(8 * bytes, 64)));
    HETSEQ_HDF5_TRY(H5Tset_size(type, bytes));
    result.bits = static_cast<int>(std::min<std::size_t>(8 * bytes, 64));
    if (input.ConsumeBool()) {
        result.bits = input.ConsumeIntegralInRange<int>(1, result.bits);
        HETSEQ_HDF5_TRY(H5Tset_precision(type, static_cast<std::size_t>(result.bits)));
        const auto spare = 8 * bytes - static_cast<std::size_t>(result.bits);
        HETSEQ_HDF5_TRY(H5Tset_offset(type, input.ConsumeIntegralInRange<std::size_t>(0, spare)));
    }
    if (input.ConsumeBool())
        HETSEQ_HDF5_TRY(H5Tset_order(type, H5T_ORDER_BE));
    return result;
}

Hdf5Type other_type(FuzzedDataProvider& input) {
    const hsize_t three = 3;
    switch (input.ConsumeIntegralInRange(0, 8)) {
        case 0:
            return Hdf5Type{H5Tcopy(H5T_IEEE_F32LE)};
        case 1:
            return Hdf5Type{H5Tcopy(H5T_C_S1)};
        case 2: {
            Hdf5Type text{H5Tcopy(H5T_C_S1)};
            HETSEQ_HDF5_TRY(H5Tset_size(text.get(), H5T_VARIABLE));
            return text;
        }
        case 3:
            return Hdf5Type{H5Tcreate(H5T_OPAQUE, 5)};
        case 4: {
            Hdf5Type compound{H5Tcreate(H5T_COMPOUND, 8)};
            HETSEQ_HDF5_TRY(H5Tinsert(compound.get(), "a", 4, H5T_STD_I32LE));
            return compound;
        }
        case 5:
            return Hdf5Type{H5Tenum_create(H5T_STD_I16LE)};
        case 6:
            return Hdf5Type{H5Tarray_create2(H5T_STD_I32LE, 1, &three)};
        case 7:
            return Hdf5Type{H5Tvlen_create(H5T_STD_I32LE)};
        default:
            return Hdf5Type{H5Tcopy(H5T_STD_B8LE)};
    }
}

std::uint64_t elements(const std::vector<hsize_t>& shape) {
    std::uint64_t count = 1;
    for (const hsize_t extent : shape)
        if (__builtin_mul_overflow(count, extent, &count))
            return ~std::uint64_t{0};
    return count;
}

hsize_t extent(FuzzedDataProvider& input, hsize_t usual) {
    switch (input.ConsumeIntegralInRange(0, 31)) {
        case 30:
            return input.ConsumeIntegralInRange<hsize_t>(0, 9);
        case 31:
            return input.ConsumeIntegral<std::uint64_t>() >> input.ConsumeIntegralInRange(0, 40);
        default:
            return usual;
    }
}

std::vector<hsize_t> shape_of(FuzzedDataProvider& input, const FieldSchema& field, hsize_t rows) {
    std::vector<hsize_t> shape{extent(input, rows)};
    for (int i = 1; i < field.rank; ++i) {
        const std::int64_t usual = field.row_shape[static_cast<std::size_t>(i - 1)];
        shape.push_back(extent(input, usual < 0 ? 4 : static_cast<hsize_t>(usual)));
    }
    if (rarely(input))
        shape.resize(input.ConsumeIntegralInRange<std::size_t>(0, 5), 2);
    return shape;
}

void choose_filters(FuzzedDataProvider& input, hid_t properties) {
    switch (input.ConsumeIntegralInRange(0, 6)) {
        case 6:
            H5Pset_deflate(properties, 1);
            break;
        case 1:
            H5Pset_shuffle(properties);
            H5Pset_deflate(properties, 9);
            break;
        case 2:
            H5Pset_fletcher32(properties);
            break;
        case 3:
            H5Pset_scaleoffset(properties, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
            break;
        case 4:
            H5Pset_nbit(properties);
            break;
        case 5:
            H5Pset_filter(properties, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);
            break;
        default:
            break;
    }
}

// Storage that HDF5 refuses to make for this shape leaves a dataset out.
Hdf5Properties storage(FuzzedDataProvider& input, const std::vector<hsize_t>& shape) {
    Hdf5Properties properties{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
    const auto rank = static_cast<int>(shape.size());
    switch (input.ConsumeIntegralInRange(0, 7)) {
        case 0:
        case 1:
            break;
        case 6:
            H5Pset_layout(properties.get(), H5D_COMPACT);
            break;
        case 7:
            H5Pset_external(properties.get(), "/nonexistent/values", 0, H5F_UNLIMITED);
            break;
        default: {
            std::vector<hsize_t> chunk;
            for (const hsize_t length : shape)
                chunk.push_back(std::clamp<hsize_t>(
                    input.ConsumeIntegralInRange<hsize_t>(1, 9), 1, std::max<hsize_t>(length, 1)));
            if (rank > 0)
                H5Pset_chunk(properties.get(), rank, chunk.data());
            choose_filters(input, properties.get());
        }
    }
    return properties;
}

// Most of them as the schema allows, some any that the type can hold.
StoredValue value(FuzzedDataProvider& input, const IntegerType& type) {
    const auto choice = input.ConsumeIntegral<std::uint8_t>();
    if (choice != 255)
        return {type.is_signed, type.bits < 3 ? 0 : std::uint64_t{choice} % 4};
    const auto any = input.ConsumeIntegral<std::uint64_t>();
    const int unused = 64 - type.bits;
    return {type.is_signed,
            type.is_signed
                ? static_cast<std::uint64_t>(static_cast<std::int64_t>(any << unused) >> unused)
                : any << unused >> unused};
}

std::vector<StoredValue> write_integers(FuzzedDataProvider& input,
                                        hid_t dataset,
                                        const IntegerType& type,
                                        std::uint64_t count) {
    std::vector<StoredValue> values;
    std::vector<std::uint64_t> bits;
    for (std::uint64_t i = 0; i < count; ++i) {
        values.push_back(value(input, type));
        bits.push_back(values.back().bits);
    }
    const hid_t memory = type.is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
    if (H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits.data()) < 0)
        return {};
    return values;
}

// IEEE formats, and some that are none.
Hdf5Type real_type(FuzzedDataProvider& input) {
    Hdf5Type type = half_type();
    switch (input.ConsumeIntegralInRange(0, 3)) {
        case 0:
            type = Hdf5Type{HETSEQ_HDF5_TRY(H5Tcopy(H5T_IEEE_F32LE))};
            break;
        case 1:
            type = Hdf5Type{HETSEQ_HDF5_TRY(H5Tcopy(H5T_IEEE_F64LE))};
            break;
        case 2:
            break;
        default:
            HETSEQ_HDF5_TRY(H5Tset_ebias(type.get(), input.ConsumeIntegralInRange<hsize_t>(1, 31)));
    }
    if (input.ConsumeBool())
        HETSEQ_HDF5_TRY(H5Tset_order(type.get(), H5T_ORDER_BE));
    return type;
}

std::vector<StoredValue> write_reals(FuzzedDataProvider& input,
                                     hid_t dataset,
                                     std::uint64_t count) {
    std::vector<StoredValue> values;
    std::vector<double> reals;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto choice = input.ConsumeIntegral<std::uint8_t>();
        const bool is_exact = choice != 255;
        reals.push_back(is_exact ? 0.25 * (choice % 8)
                                 : std::bit_cast<double>(input.ConsumeIntegral<std::uint64_t>()));
        values.push_back({.real = reals.back(), .is_exact = is_exact});
    }
    if (H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, reals.data()) < 0)
        return {};
    return values;
}

// The bytes of an enumeration as they are, which need be none of its members.
std::vector<StoredValue> write_booleans(FuzzedDataProvider& input,
                                        hid_t dataset,
                                        std::uint64_t count) {
    std::vector<StoredValue> values;
    std::vector<std::int8_t> bytes;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto choice = input.ConsumeIntegral<std::uint8_t>();
        bytes.push_back(static_cast<std::int8_t>(choice < 250 ? choice % 2 : choice));
        values.push_back(
            {.is_signed = true,
             .bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes.back()))});
    }
    const Hdf5Type type = boolean_type();
    if (H5Dwrite(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
        return {};
    return values;
}

// A type that the field may have, and the way to write its values.
struct GoodType {
    IntegerType integer{};
    Hdf5Type other{};  // null: the integer's
    hid_t get() const { return other ? other.get() : integer.type.get(); }
};

GoodType good_type(FuzzedDataProvider& input, const FieldSchema& field) {
    if (is_real(field.type))
        return {.other = real_type(input)};
    if (field.type == ElementType::boolean && !input.ConsumeBool())
        return {.other = boolean_type()};
    return {.integer = integer_type(input)};
}

std::vector<StoredValue> write_values(FuzzedDataProvider& input,
                                      hid_t dataset,
                                      const GoodType& type,
                                      const FieldSchema& field,
                                      std::uint64_t count) {
    if (!type.other)
        return write_integers(input, dataset, type.integer, count);
    return is_real(field.type) ? write_reals(input, dataset, count)
                               : write_booleans(input, dataset, count);
}

std::vector<StoredValue> write_dataset(FuzzedDataProvider& input,
                                       hid_t file,
                                       const FieldSchema& field,
                                       hsize_t rows) {
    const std::vector<hsize_t> shape = shape_of(input, field, rows);
    const auto rank = static_cast<int>(shape.size());
    const Hdf5Space space{rarely(input) ? H5Screate(H5S_NULL)
                                        : H5Screate_simple(rank, shape.data(), nullptr)};
    const Hdf5Properties properties = storage(input, shape);
    const bool is_good = !rarely(input);
    const GoodType good = good_type(input, field);
    const Hdf5Type other = is_good ? Hdf5Type{} : other_type(input);
    const Hdf5Dataset dataset{H5Dcreate2(file,
                                         field.name.c_str(),
                                         is_good ? good.get() : other.get(),
                                         space.get(),
                                         H5P_DEFAULT,
                                         properties.get(),
                                         H5P_DEFAULT)};
    if (!dataset || !is_good || elements(shape) > most_written ||
        H5Sget_simple_extent_type(space.get()) == H5S_NULL)
        return {};
    return write_values(input, dataset.get(), good, field, elements(shape));
}

// Writes something under a dataset's name that is not a dataset.
void write_other(FuzzedDataProvider& input, hid_t file, const char* name) {
    switch (input.ConsumeIntegralInRange(0, 4)) {
        case 0:
            return;
        case 1:
            Hdf5Group{H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)};
            return;
        case 2:
            H5Lcreate_soft(input.ConsumeBool() ? "/labels" : "/nowhere", file, name, 0, 0);
            return;
        case 3:
            H5Lcreate_external("/nonexistent/file.h5", "/ids", file, name, 0, 0);
            return;
        default: {
            const Hdf5Type type{H5Tcopy(H5T_STD_I32LE)};
            H5Tcommit2(file, name, type.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        }
    }
}

// Those of rows of `lengths`, mostly.
std::vector<std::int64_t> offsets_of(FuzzedDataProvider& input,
                                     const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> offsets{0};
    for (const std::int64_t length : lengths)
        offsets.push_back(offsets.back() + length);
    if (rarely(input)) {
        const auto place = input.ConsumeIntegralInRange<std::size_t>(0, offsets.size() - 1);
        offsets[place] = input.ConsumeBool() ? input.ConsumeIntegral<std::int64_t>()
                                             : input.ConsumeIntegralInRange<std::int64_t>(-1, 99);
    }
    if (rarely(input))
        offsets.resize(input.ConsumeIntegralInRange<std::size_t>(0, offsets.size()));
    return offsets;
}

void write_offsets(FuzzedDataProvider& input,
                   hid_t file,
                   const std::string& name,
                   const std::vector<std::int64_t>& lengths) {
    const std::vector<std::int64_t> offsets = offsets_of(input, lengths);
    const hid_t types[] = {H5T_STD_I64LE, H5T_STD_I64BE, H5T_STD_U64LE};
    const hid_t type =
        rarely(input) ? H5T_STD_I32LE : types[input.ConsumeIntegralInRange<std::size_t>(0, 2)];
    std::vector<hsize_t> shape{offsets.size()};
    if (rarely(input))
        shape.push_back(1);
    const Hdf5Space space{H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr)};
    const Hdf5Properties properties = storage(input, shape);
    const Hdf5Dataset dataset{H5Dcreate2(
        file, name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT)};
    if (dataset)
        H5Dwrite(dataset.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, offsets.data());
}

// Mostly as long as the values that `value` gives need, where they lie in them.
std::vector<std::int64_t> row_lengths(FuzzedDataProvider& input, hsize_t rows) {
    std::vector<std::int64_t> lengths;
    for (hsize_t row = 0; row < rows; ++row) {
        const std::int64_t choice = input.ConsumeIntegralInRange(0, 31);
        lengths.push_back(choice < 30 ? 4 + choice % 5 : choice - 30);
    }
    return lengths;
}

// `lengths`: of the field whose rows this one's may have to agree with.
std::vector<StoredValue> write_ragged(FuzzedDataProvider& input,
                                      hid_t file,
                                      const FieldSchema& field,
                                      const std::vector<std::int64_t>& lengths) {
    const bool is_alike = field.same_row_shape_as.empty() ? !input.ConsumeBool() : !rarely(input);
    const std::vector<std::int64_t> own = is_alike ? lengths : row_lengths(input, lengths.size());
    if (rarely(input))
        write_other(input, file, offsets_name(field.name).c_str());
    else
        write_offsets(input, file, offsets_name(field.name), own);
    const auto count = std::accumulate(own.begin(), own.end(), std::int64_t{0});
    return write_dataset(input, file, field, static_cast<hsize_t>(count));
}

}  // namespace

WrittenShard write_shard(FuzzedDataProvider& input) {
    WrittenShard shard;
    shard.bytes = make_hdf5_image([&](hid_t file) {
        const hsize_t rows = 20 - input.ConsumeIntegralInRange<hsize_t>(0, 20);
        const std::vector<std::int64_t> lengths = row_lengths(input, rows);
        for (const FieldSchema& field : shard_schema().fields) {
            shard.values.emplace_back();
            if (rarely(input))
                write_other(input, file, field.name.c_str());
            else if (field.is_ragged)
                shard.values.back() = write_ragged(input, file, field, lengths);
            else
                shard.values.back() = write_dataset(input, file, field, rows);
        }
        if (rarely(input))
            write_other(input, file, "surplus");
    });
    return shard;
}

}  // namespace hetseq::fuzz
