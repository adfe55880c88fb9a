#include "hetseq/prepare/files/idx.hpp"

#include <cerrno>
#include <cstring>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/shard_spec.hpp"

#include "gzip_file.hpp"

namespace hetseq {

namespace {

constexpr std::uint8_t unsigned_byte = 0x08;

[[noreturn]] void throw_malformed(const std::string& name, const std::string& why) {
    throw BadData(name + " is not an IDX file of unsigned bytes", why, "name MNIST-like IDX files");
}

std::int64_t big_endian(std::span<const std::uint8_t> bytes) {
    return (std::int64_t{bytes[0]} << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3];
}

// Plain files come through zlib as they are.
std::vector<std::uint8_t> read_unzipped(const std::string& path) {
    const GzipFile file{gzopen(path.c_str(), "rb")};
    if (!file)
        throw IoError("cannot read " + path, std::strerror(errno));
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
    int count = 0;
    while ((count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0)
        bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + count);
    int error = Z_OK;
    const std::string message = gzerror(file.get(), &error);
    if (count < 0 || error != Z_OK)
        throw BadData(path + " is truncated or damaged", message, "copy the file again");
    return bytes;
}

}  // namespace

IdxArray parse_idx(std::span<const std::uint8_t> bytes, const std::string& name) {
    if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
        throw_malformed(name,
                        "it does not begin with two zero bytes, a type and a dimension count");
    if (bytes[2] != unsigned_byte)
        throw_malformed(name, "its type is " + std::to_string(bytes[2]) + ", expected 8");
    const std::size_t dimensions = bytes[3];
    const std::size_t header = 4 + 4 * dimensions;
    if (bytes.size() < header)
        throw_malformed(name, "it ends within its header");
    IdxArray array;
    const std::size_t count = bytes.size() - header;
    std::size_t expected = 1;
    for (std::size_t i = 0; i < dimensions; ++i) {
        const std::int64_t length = big_endian(bytes.subspan(4 + 4 * i, 4));
        array.shape.push_back(length);
        // Lengths whose product overflows cannot match the size of any file.
        if (__builtin_mul_overflow(expected, static_cast<std::size_t>(length), &expected))
            throw_malformed(name, "its dimensions are larger than any file");
    }
    if (expected != count)
        throw BadData(name + " is truncated or damaged",
                      "its header promises " + std::to_string(expected) + " values, " +
                          std::to_string(count) + " follow",
                      "copy the file again");
    array.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
    return array;
}

IdxArray read_idx(const std::string& path) {
    stamp_readable_file(path, "name IDX files of images and as many of labels, plain or gzip");
    return parse_idx(read_unzipped(path), path);
}

}  // namespace hetseq
