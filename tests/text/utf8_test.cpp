#include "hetseq/text/utf8.hpp"

#include <string>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(Utf8Test, TextOfAllLengthsIsGood) {
    const std::string text =
        "plain text, über, 中文, \xf0\x9f\x98\x80, \xf4\x8f\xbf\xbf and the end";

    EXPECT_EQ(valid_utf8_bytes(text), text.size());
    EXPECT_EQ(valid_utf8_bytes(""), 0U);
}

// The bad sequences of RFC 3629, section 4 and 10.
TEST(Utf8Test, TheFirstBadByteIsFound) {
    for (const std::string bad : {"\x80",
                                  "\xc0\x80",
                                  "\xc1\xbf",
                                  "\xe0\x80\xaf",
                                  "\xed\xa0\x80",
                                  "\xf0\x80\x80\x80",
                                  "\xf4\x90\x80\x80",
                                  "\xf5\x80\x80\x80",
                                  "\xff",
                                  "\xe4\xb8",
                                  "\xc3\x28"}) {
        EXPECT_EQ(valid_utf8_bytes(bad), 0U);
        EXPECT_EQ(valid_utf8_bytes("0123456789ü" + bad + " and more text"), 12U);
    }
}

}  // namespace
}  // namespace hetseq
