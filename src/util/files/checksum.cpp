#include "hetseq/util/files/checksum.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#define XXH_INLINE_ALL
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/process/activity.hpp"

#include "read_ahead.hpp"
#include <xxhash.h>

namespace hetseq {

struct Xxh64::State {
    XXH64_state_t value;
};

Xxh64::Xxh64() : state_{std::make_unique<State>()} {
    XXH64_reset(&state_->value, 0);
}

Xxh64::~Xxh64() = default;
Xxh64::Xxh64(Xxh64&&) noexcept = default;
Xxh64& Xxh64::operator=(Xxh64&&) noexcept = default;

void Xxh64::update(const void* data, std::size_t bytes) {
    XXH64_update(&state_->value, data, bytes);
}

std::uint64_t Xxh64::digest() const {
    return XXH64_digest(&state_->value);
}

std::uint64_t xxh64_of(std::string_view bytes) {
    return XXH64(bytes.data(), bytes.size(), 0);
}

FileDigest digest_of(const std::filesystem::path& path) {
    constexpr std::size_t piece = 4 << 20;
    require_regular_file(path);
    std::ifstream file{path, std::ios::binary};
    ReadAhead ahead{path};
    ahead.at(0);
    std::vector<char> buffer(piece);
    FileDigest digest;
    Xxh64 hash;
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
           file.gcount() > 0) {
        const auto bytes = static_cast<std::size_t>(file.gcount());
        hash.update(buffer.data(), bytes);
        digest.bytes += bytes;
        ahead.at(digest.bytes);
        activity::progress();
    }
    if (!file.eof())
        throw IoError("cannot read " + path.string(), std::strerror(errno), "check the file");
    digest.xxh64 = hash.digest();
    return digest;
}

std::string checksum_text(std::uint64_t xxh64) {
    constexpr std::size_t digits = 16;
    std::string text(digits, '0');
    for (std::size_t i = digits; i-- > 0; xxh64 >>= 4)
        text[i] = "0123456789abcdef"[xxh64 & 15];
    return text;
}

}  // namespace hetseq
