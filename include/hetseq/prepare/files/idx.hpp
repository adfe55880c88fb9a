#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hetseq {

/// An IDX file of unsigned bytes, MNIST's format (LeCun, http://yann.lecun.com/exdb/mnist):
/// big-endian, two zero bytes, type 0x08, number of dimensions, their lengths (4 bytes each),
/// values in row-major order.
struct IdxArray {
    std::vector<std::int64_t> shape;
    std::vector<std::uint8_t> values;
};

/// Parses `bytes`; `name` is what errors call them. Throws BadData unless they are one complete
/// IDX array of unsigned bytes and nothing else.
IdxArray parse_idx(std::span<const std::uint8_t> bytes, const std::string& name);

/// Reads the file at `path`, plain or gzip. Throws MissingInput, IoError or BadData.
IdxArray read_idx(const std::string& path);

}  // namespace hetseq
