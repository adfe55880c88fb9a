#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "hetseq/data/files/shard_format.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

/// An HDF5 file that this process writes. It lies beside its place under a temporary name, and gets
/// its own by `commit`; without that it is removed. All members throw IoError.
class Hdf5Output {
public:
    explicit Hdf5Output(std::filesystem::path path, ShardFormat format = ShardFormat::earliest);
    ~Hdf5Output();
    Hdf5Output(const Hdf5Output&) = delete;
    Hdf5Output& operator=(const Hdf5Output&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    hid_t get() const noexcept { return file_.get(); }
    /// An attribute of the file, text in UTF-8.
    void attach_text(const std::string& name, const std::string& text);
    /// Writes what HDF5 holds in memory. Closing a dataset would do so too, but tell nobody of a
    /// failure.
    void flush();
    /// All datasets are flushed and closed. What is left is written and synced to disk, and the
    /// file is closed. Returns its size [bytes].
    std::int64_t finish();
    /// The finished file gets its name.
    void commit();

private:
    std::filesystem::path path_, temporary_;
    Hdf5File file_;
};

}  // namespace hetseq
