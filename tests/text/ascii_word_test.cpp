// The scan of 16 bytes at once against the one byte for byte.
#include "text/ascii_word.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

void expect_equal_scans(const std::string& text) {
    for (std::size_t at = 0; at + WordKey::bytes <= text.size(); ++at)
        for (const CaseBit bit : {CaseBit::keep, CaseBit::lower}) {
            WordKey plain, fast;
            ASSERT_EQ(VectorWordScan::run(text.data() + at, bit, fast),
                      PlainWordScan::run(text.data() + at, bit, plain));
            ASSERT_EQ(fast, plain);
        }
}

TEST(AsciiWordTest, BothScansAreEqualForEveryByteAtEveryPlace) {
    for (unsigned byte = 0; byte < 256; ++byte)
        for (const std::size_t place : {0, 1, 7, 8, 15, 16, 17, 31}) {
            std::string text(WordKey::bytes, 'Q');
            text[place] = static_cast<char>(byte);
            expect_equal_scans(text);
        }
}

TEST(AsciiWordTest, BothScansAreEqualForRandomBytes) {
    std::mt19937 source{2};
    const std::string letters = "abczABCZ0189";
    for (int i = 0; i < 2000; ++i) {
        std::string text(100, ' ');
        for (char& byte : text)
            byte = source() % 20 == 0 ? static_cast<char>(source())
                                      : letters[source() % letters.size()];
        expect_equal_scans(text);
    }
}

TEST(AsciiWordTest, TellsWordsFromWhatStandsBetween) {
    WordKey key;

    EXPECT_EQ(PlainWordScan::run(
                  (std::string("Ab9 x") + std::string(40, ' ')).data(), CaseBit::lower, key),
              3U);
    EXPECT_EQ(key.parts[0], 0x396261U);  // "ab9"
    EXPECT_EQ(kind_of('_'), ByteKind::punctuation);
    EXPECT_EQ(kind_of('\v'), ByteKind::other);
    EXPECT_EQ(kind_of('\r'), ByteKind::blank);
    EXPECT_EQ(kind_of(0x7f), ByteKind::other);
    EXPECT_EQ(kind_of(0x80), ByteKind::other);
}

}  // namespace
}  // namespace hetseq
