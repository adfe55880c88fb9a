#include "hetseq/util/files/crc32c.hpp"

#include <array>

namespace hetseq {

namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
        table[byte] = crc;
    }
    return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
    static constexpr auto table = make_table();
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const char c : bytes)
        crc = (crc >> 8U) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
    return ~crc;
}

}  // namespace hetseq
