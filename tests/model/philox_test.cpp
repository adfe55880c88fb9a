#include "hetseq/model/philox.hpp"

#include <array>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

struct KnownAnswer {
    std::array<std::uint32_t, 4> counter;
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 4> expected;
};

// Random123 1.14, tests/kat_vectors, "philox4x32 10".
constexpr std::uint32_t ones = 0xFFFFFFFFu;
const KnownAnswer known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
    {{ones, ones, ones, ones}, {ones, ones}, {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
    {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
     {0xA4093822, 0x299F31D0},
     {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
};

TEST(PhiloxTest, GivesRandom123sKnownAnswers) {
    for (const auto& [counter, key, expected] : known_answers) {
        const PhiloxCounter drawn =
            philox4x32({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});

        for (std::size_t w = 0; w < 4; ++w)
            EXPECT_EQ(drawn.word[w], expected[w]) << "word " << w;
    }
}

}  // namespace
}  // namespace hetseq
