#include "hetseq/data/files/first_shard.hpp"

#include <algorithm>
#include <array>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"

namespace hetseq {

std::string first_shard(const std::string& spec) {
    initialize_hdf5();
    const std::string path = expand_shard_spec(spec).front();
    stamp_readable_file(path);
    return path;
}

bool first_shard_holds(const std::string& spec, const std::string& name) {
    const Hdf5File file = try_open_hdf5(first_shard(spec));
    return file && H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::int64_t> read_first_integers(const std::string& spec,
                                              const std::string& name,
                                              std::int64_t most) {
    const std::string path = first_shard(spec), where = path + ": dataset '" + name + "'";
    const Hdf5File file = open_hdf5(path);
    if (HETSEQ_HDF5_TRY(H5Lexists(file.get(), name.c_str(), H5P_DEFAULT)) == 0)
        throw BadData(where + " is missing", "", "name shards of the task's kind");
    const Hdf5Dataset dataset = open_hdf5_dataset(file.get(), path, name);
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Dget_type(dataset.get()))};
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset.get()))};
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (H5Tget_class(type.get()) != H5T_INTEGER || rank < 1 || rank > 2)
        throw BadData(where + " does not hold rows of integers",
                      "expected integers in one or two dimensions",
                      "name shards of the task's kind");
    const std::array<hsize_t, 2> start{};
    std::array<hsize_t, 2> count{1, 1};
    HETSEQ_HDF5_TRY(H5Sget_simple_extent_dims(space.get(), count.data(), nullptr));
    const auto most_rows = static_cast<hsize_t>(most) / std::max<hsize_t>(count[1], 1);
    count[0] = std::min(count[0], most_rows);
    std::vector<std::int64_t> integers(static_cast<std::size_t>(count[0] * count[1]));
    if (integers.empty())
        return integers;
    const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(rank, count.data(), nullptr))};
    HETSEQ_HDF5_TRY(H5Sselect_hyperslab(
        space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
    if (H5Dread(dataset.get(),
                H5T_NATIVE_INT64,
                memory.get(),
                space.get(),
                H5P_DEFAULT,
                integers.data()) < 0)
        throw IoError(
            where + " cannot be read", hdf5_error_message(), "check or copy the file again");
    return integers;
}

}  // namespace hetseq
