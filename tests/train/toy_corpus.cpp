#include <filesystem>
#include <vector>

#include <unistd.h>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

#include "train/toy_run.hpp"

namespace hetseq::test {

namespace {

constexpr hsize_t length = 6;  // tokens a row

void write_bytes(const Hdf5File& file,
                 const char* name,
                 const std::vector<hsize_t>& shape,
                 const std::vector<std::uint8_t>& values) {
    const Hdf5Space space(
        HETSEQ_HDF5_TRY(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr)));
    const Hdf5Dataset dataset(HETSEQ_HDF5_TRY(H5Dcreate2(
        file.get(), name, H5T_STD_U8LE, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    HETSEQ_HDF5_TRY(
        H5Dwrite(dataset.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

// Sample s has 2 to 6 tokens in [1, 19], then padding, and the label s squared modulo 4 plus s
// modulo 3.
void write_shard(const std::filesystem::path& path,
                 std::int64_t first,
                 std::int64_t samples,
                 std::int64_t bad_sample) {
    std::vector<std::uint8_t> tokens, labels;
    for (std::int64_t s = first; s < first + samples; ++s) {
        for (std::int64_t t = 0; t < static_cast<std::int64_t>(length); ++t)
            tokens.push_back(
                t < 2 + s % 5 ? static_cast<std::uint8_t>(1 + (7 * s + 3 * t + s * t) % 19) : 0);
        labels.push_back(s == bad_sample ? 200 : static_cast<std::uint8_t>((s * s + s % 3) % 4));
    }
    const Hdf5File file(
        HETSEQ_HDF5_TRY(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)));
    write_bytes(file, "tokens", {static_cast<hsize_t>(samples), length}, tokens);
    write_bytes(file, "labels", {static_cast<hsize_t>(samples)}, labels);
}

}  // namespace

std::string write_toy_corpus(const HostComm& world, std::int64_t samples, std::int64_t bad_sample) {
    const std::string name = "hetseq_toy_" + std::to_string(::getpid()) + "_" +
                             std::to_string(samples) + "_" + std::to_string(bad_sample);
    const std::filesystem::path folder =
        world.broadcast((std::filesystem::temp_directory_path() / name).string(), 0);
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        std::filesystem::create_directories(folder);
        write_shard(folder / "a.h5", 0, samples / 3, bad_sample);
        write_shard(folder / "b.h5", samples / 3, samples - samples / 3, bad_sample);
    });
    return folder.string();
}

void remove_toy_corpus(const HostComm& world, const std::string& folder) {
    world.barrier();
    if (world.rank() == 0)
        std::filesystem::remove_all(folder);
}

}  // namespace hetseq::test
