#include "hetseq/util/files/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/regular_file.hpp"

#include "safetensors_header.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace {

constexpr std::uint64_t length_bytes = 8;              // of the header's length
constexpr std::uint64_t longest_header = 100'000'000;  // bytes, as the format's own reader
constexpr std::size_t header_alignment = 8;

std::ifstream open(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path))
        throw MissingInput("there is no file " + path.string(), "", "check the path");
    check_regular_file(path);
    std::ifstream file{path, std::ios::binary};
    if (!file)
        throw IoError("cannot open " + path.string(), "", "check its permissions");
    return file;
}

void read_bytes(std::ifstream& file,
                const std::filesystem::path& path,
                std::uint64_t offset,
                void* out,
                std::size_t bytes) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes));
    if (!file)
        throw IoError("cannot read " + std::to_string(bytes) + " bytes at " +
                          std::to_string(offset) + " of " + path.string(),
                      "it was cut or the disk fails",
                      "check the file");
}

/// Length of the header, checked against the file's.
std::uint64_t header_length(std::ifstream& file,
                            const std::filesystem::path& path,
                            std::uint64_t file_bytes) {
    std::uint64_t length = 0;
    if (file_bytes >= length_bytes)
        read_bytes(file, path, 0, &length, length_bytes);
    if (file_bytes < length_bytes || length > longest_header || length > file_bytes - length_bytes)
        throw BadData(path.string() + " is not a valid safetensors file",
                      "its length is " + std::to_string(file_bytes) +
                          " bytes, the first 8 of which say that a header of " +
                          std::to_string(length) + " bytes follows",
                      "write or download it again");
    return length;
}

/// Wider types first.
std::vector<SafetensorData> aligned_order(std::span<const SafetensorData> tensors) {
    std::vector<SafetensorData> ordered(tensors.begin(), tensors.end());
    std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
        return size_of(a.type) > size_of(b.type);
    });
    return ordered;
}

std::size_t bytes_of(const SafetensorData& tensor) {
    std::size_t bytes = size_of(tensor.type);
    for (const std::int64_t extent : tensor.shape)
        bytes *= static_cast<std::size_t>(extent);
    return bytes;
}

std::string header_text(const std::vector<SafetensorData>& tensors,
                        const std::map<std::string, std::string>& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty())
        header["__metadata__"] = metadata;
    std::size_t begin = 0;
    for (const SafetensorData& tensor : tensors) {
        HETSEQ_ASSERT(!header.contains(tensor.name));
        const std::size_t end = begin + bytes_of(tensor);
        header[tensor.name] = {{"dtype", name_of(tensor.type)},
                               {"shape", tensor.shape},
                               {"data_offsets", {begin, end}}};
        begin = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + header_alignment - 1) / header_alignment * header_alignment, ' ');
    return text;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : path_{path}, file_{open(path)} {
    const std::uint64_t file_bytes = std::filesystem::file_size(path);
    const std::uint64_t length = header_length(file_, path_, file_bytes);
    data_start_ = length_bytes + length;
    std::string text(static_cast<std::size_t>(length), '\0');
    read_bytes(file_, path_, length_bytes, text.data(), text.size());
    detail::SafetensorsHeader header =
        detail::parse_safetensors_header(text, file_bytes - data_start_, path_);
    entries_ = std::move(header.entries);
    metadata_ = std::move(header.metadata);
    by_name_.resize(entries_.size());
    std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
    std::sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
        return entries_[a].name < entries_[b].name;
    });
}

const SafetensorEntry* SafetensorsReader::find(const std::string& name) const noexcept {
    const auto found = std::lower_bound(
        by_name_.begin(), by_name_.end(), name, [&](std::size_t entry, const std::string& wanted) {
            return entries_[entry].name < wanted;
        });
    const bool is_there = found != by_name_.end() && entries_[*found].name == name;
    return is_there ? &entries_[*found] : nullptr;
}

void SafetensorsReader::read(const SafetensorEntry& entry, void* out) {
    read_bytes(file_, path_, data_start_ + entry.begin, out, entry.bytes());
}

FileDigest write_safetensors(const std::filesystem::path& path,
                             std::span<const SafetensorData> tensors,
                             const std::map<std::string, std::string>& metadata,
                             const std::function<void()>& before_naming) {
    const std::vector<SafetensorData> ordered = aligned_order(tensors);
    const std::string header = header_text(ordered, metadata);
    const std::uint64_t length = header.size();
    AtomicFile file{path};
    file.write(&length, length_bytes);
    file.write(header);
    for (const SafetensorData& tensor : ordered)
        file.write(tensor.data, bytes_of(tensor));
    return file.commit(before_naming);
}

}  // namespace hetseq
