#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace hetseq {

/// XXH64 (xxHash, seed 0) of bytes that come in pieces.
class Xxh64 {
public:
    Xxh64();
    ~Xxh64();
    Xxh64(Xxh64&&) noexcept;
    Xxh64& operator=(Xxh64&&) noexcept;

    void update(const void* data, std::size_t bytes);
    /// The checksum of all bytes so far.
    std::uint64_t digest() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// XXH64 of `bytes`.
std::uint64_t xxh64_of(std::string_view bytes);

/// A file's contents, identified by size and checksum.
struct FileDigest {
    std::uint64_t bytes = 0;
    std::uint64_t xxh64 = 0;
    friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

/// Reads all of `path`. Throws MissingInput or IoError.
FileDigest digest_of(const std::filesystem::path& path);

/// 16 hexadecimal digits, as `xxhsum` prints them.
std::string checksum_text(std::uint64_t xxh64);

}  // namespace hetseq
