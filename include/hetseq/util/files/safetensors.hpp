#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/checksum.hpp"

namespace hetseq {

/// Element types of the format, by its names.
enum class SafetensorType { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL };

std::size_t size_of(SafetensorType type) noexcept;  // bytes
const char* name_of(SafetensorType type) noexcept;  // "F32"

/// "(2, 3)"
std::string shape_text(std::span<const std::int64_t> shape);

/// One tensor of a file. Row-major, little-endian.
struct SafetensorEntry {
    std::string name;
    SafetensorType type = SafetensorType::F32;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  // bytes from the start of the data
    std::uint64_t end = 0;
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - begin); }
};

/// A file in the safetensors format (https://huggingface.co/docs/safetensors), opened for reading.
class SafetensorsReader {
public:
    /// Reads and checks the header. Throws MissingInput (no such file), IoError, or BadData that
    /// names the file and what is wrong with it.
    explicit SafetensorsReader(const std::filesystem::path& path);

    const std::filesystem::path& path() const noexcept { return path_; }
    /// In the order of the data.
    const std::vector<SafetensorEntry>& entries() const noexcept { return entries_; }
    const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
    /// nullptr: none of this name.
    const SafetensorEntry* find(const std::string& name) const noexcept;
    /// Copies the tensor's `entry.bytes()` bytes to `out`. Throws IoError.
    void read(const SafetensorEntry& entry, void* out);
    /// Copies `bytes` of the tensor's bytes, from the one of index `first` on. Throws IoError.
    void read(const SafetensorEntry& entry, std::uint64_t first, std::size_t bytes, void* out);

private:
    std::filesystem::path path_;
    std::ifstream file_;
    std::uint64_t data_start_ = 0;  // of the file, bytes
    std::vector<SafetensorEntry> entries_;
    std::vector<std::size_t> by_name_;  // of the entries
    std::map<std::string, std::string> metadata_;
};

/// The indices of tensors of these types in the order in which a file holds them: wider types come
/// first, so that every tensor is aligned; otherwise the order stays.
std::vector<std::size_t> safetensors_order(std::span<const SafetensorType> types);

/// Writes a file atomically from bytes that come in pieces. The same tensors give the same bytes.
/// All members throw IoError.
class SafetensorsWriter {
public:
    /// `entries` have name, type and shape; their places in the file are set here.
    SafetensorsWriter(const std::filesystem::path& path,
                      std::vector<SafetensorEntry> entries,
                      const std::map<std::string, std::string>& metadata = {});

    /// In the order of the data, which is `safetensors_order`.
    const std::vector<SafetensorEntry>& entries() const noexcept { return entries_; }
    /// The next bytes of the data, of one tensor or several.
    void write(const void* data, std::size_t bytes);
    /// All data were written. `before_naming` as in AtomicFile. Returns the digest of the file.
    FileDigest finish(const std::function<void()>& before_naming = {});

private:
    std::vector<SafetensorEntry> entries_;
    AtomicFile file_;
    std::uint64_t missing_ = 0;  // bytes of data
};

/// One tensor to write; `data` is row-major and contiguous.
struct SafetensorData {
    std::string name;
    SafetensorType type = SafetensorType::F32;
    std::vector<std::int64_t> shape;
    const void* data = nullptr;
};

/// Writes these tensors by a SafetensorsWriter. Throws IoError.
FileDigest write_safetensors(const std::filesystem::path& path,
                             std::span<const SafetensorData> tensors,
                             const std::map<std::string, std::string>& metadata = {},
                             const std::function<void()>& before_naming = {});

}  // namespace hetseq
