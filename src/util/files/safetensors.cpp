#include "hetseq/util/files/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"

#include "safetensors_header.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace {

constexpr std::uint64_t length_bytes = 8;              // of the header's length
constexpr std::uint64_t longest_header = 100'000'000;  // bytes, as the format's own reader
constexpr std::size_t header_alignment = 8;

std::ifstream open(const std::filesystem::path& path) {
    require_regular_file(path);
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

std::uint64_t bytes_of(const SafetensorEntry& entry) {
    std::uint64_t bytes = size_of(entry.type);
    for (const std::int64_t extent : entry.shape)
        bytes *= static_cast<std::uint64_t>(extent);
    return bytes;
}

// In the order of the data, with their places in it.
std::vector<SafetensorEntry> laid_out(std::vector<SafetensorEntry> entries) {
    std::vector<SafetensorType> types;
    for (const SafetensorEntry& entry : entries)
        types.push_back(entry.type);
    std::vector<SafetensorEntry> ordered;
    std::uint64_t begin = 0;
    for (const std::size_t index : safetensors_order(types)) {
        SafetensorEntry& entry = ordered.emplace_back(std::move(entries[index]));
        entry.begin = begin;
        entry.end = begin += bytes_of(entry);
    }
    return ordered;
}

std::string header_text(const std::vector<SafetensorEntry>& entries,
                        const std::map<std::string, std::string>& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty())
        header["__metadata__"] = metadata;
    for (const SafetensorEntry& entry : entries) {
        HETSEQ_ASSERT(!header.contains(entry.name));
        header[entry.name] = {{"dtype", name_of(entry.type)},
                              {"shape", entry.shape},
                              {"data_offsets", {entry.begin, entry.end}}};
    }
    std::string text = json_text(header);
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
    read(entry, 0, entry.bytes(), out);
}

void SafetensorsReader::read(const SafetensorEntry& entry,
                             std::uint64_t first,
                             std::size_t bytes,
                             void* out) {
    HETSEQ_ASSERT(first <= entry.bytes() && bytes <= entry.bytes() - first);
    read_bytes(file_, path_, data_start_ + entry.begin + first, out, bytes);
}

std::vector<std::size_t> safetensors_order(std::span<const SafetensorType> types) {
    std::vector<std::size_t> order(types.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return size_of(types[a]) > size_of(types[b]);
    });
    return order;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<SafetensorEntry> entries,
                                     const std::map<std::string, std::string>& metadata)
    : entries_{laid_out(std::move(entries))},
      file_{path},
      missing_{entries_.empty() ? 0 : entries_.back().end} {
    const std::string header = header_text(entries_, metadata);
    const std::uint64_t length = header.size();
    file_.write(&length, length_bytes);
    file_.write(header);
}

void SafetensorsWriter::write(const void* data, std::size_t bytes) {
    HETSEQ_ASSERT(bytes <= missing_);
    file_.write(data, bytes);
    missing_ -= bytes;
}

FileDigest SafetensorsWriter::finish(const std::function<void()>& before_naming) {
    HETSEQ_ASSERT(missing_ == 0);
    return file_.commit(before_naming);
}

FileDigest write_safetensors(const std::filesystem::path& path,
                             std::span<const SafetensorData> tensors,
                             const std::map<std::string, std::string>& metadata,
                             const std::function<void()>& before_naming) {
    std::vector<SafetensorEntry> entries;
    std::vector<SafetensorType> types;
    for (const SafetensorData& tensor : tensors) {
        entries.push_back({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
        types.push_back(tensor.type);
    }
    SafetensorsWriter writer(path, std::move(entries), metadata);
    const std::vector<std::size_t> order = safetensors_order(types);
    for (std::size_t i = 0; i < order.size(); ++i)
        writer.write(tensors[order[i]].data, writer.entries()[i].bytes());
    return writer.finish(before_naming);
}

}  // namespace hetseq
