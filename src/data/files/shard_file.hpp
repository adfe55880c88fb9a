#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "hetseq/data/files/hdf5.hpp"
#include "hetseq/data/files/shard_format.hpp"

namespace hetseq {

constexpr unsigned shard_gzip_level = 4;

/// An HDF5 file that appears under its name by `commit`. Before, it lies beside it, and without
/// `commit` it is removed. All members throw IoError.
class ShardFile {
public:
    ShardFile(std::filesystem::path path, ShardFormat format);
    ~ShardFile();
    ShardFile(const ShardFile&) = delete;
    ShardFile& operator=(const ShardFile&) = delete;

    hid_t get() const noexcept { return file_.get(); }
    /// An attribute of the file, text in UTF-8.
    void attach_text(const std::string& name, const std::string& text);

    /// No dataset is open any more: what is left is written and synced to disk. Returns the file's
    /// size [bytes].
    std::int64_t finish();
    /// The finished file gets its name.
    void commit();

private:
    std::filesystem::path path_, temporary_;
    Hdf5File file_;
};

}  // namespace hetseq
